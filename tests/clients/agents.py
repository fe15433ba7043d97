"""The MCP server with the Python client and the inspector of the protocol, over stdio and HTTP."""

import asyncio
import json
import os
import subprocess

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from service import BINARY, Served

INSPECTOR = os.environ["MCP_INSPECTOR"]
TOOLS = ["list_tables", "describe", "estimate", "query", "budget"]
LIST = "SELECT aid, name FROM saved_searches ORDER BY aid"


def text(result):
    return result.content[0].text


async def talk(client):
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    listed = await client.call_tool("query", {"sql": LIST})
    assert not listed.is_error and "\n183772|" in text(listed), text(listed)
    described = await client.call_tool("describe", {"table": "mentions"})
    assert "published_at|timestamptz" in text(described)
    estimated = await client.call_tool("estimate", {"sql": "SELECT id FROM mentions"})
    assert "Cheaper queries" in text(estimated), text(estimated)
    refused = await client.call_tool("query", {"sql": "SELECT id FROM mentions WHERE duration = '30d'", "max_requests": 1})
    assert refused.is_error and text(refused).startswith("Refused before the first request"), text(refused)
    resources = (await client.list_resources()).resources
    page = await client.read_resource(str(resources[-1].uri))
    assert "# Use by agents" in page.contents[0].text


async def over_stdio(url):
    # With and without the handshake of older versions of the protocol.
    for mode in ("auto", "legacy"):
        environment = {"SAVEDSEARCH_API_KEY": "demo-key-comms"}
        server = StdioServerParameters(command=BINARY, args=["--base-url", url, "mcp"], env=environment)
        async with Client(server, mode=mode) as client:
            await talk(client)


async def over_http(address):
    for mode in ("auto", "legacy"):
        http = httpx2.AsyncClient(headers={"authorization": "Bearer bobs-token"})
        async with http, Client(streamable_http_client(f"http://{address}/mcp", http_client=http), mode=mode) as client:
            await talk(client)


def inspect(*arguments, status=0):
    command = [INSPECTOR, "--cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def inspected(url, address):
    # The inspector passes none of its own environment on.
    stdio = ["-e", "SAVEDSEARCH_API_KEY=demo-key-comms", BINARY, "--base-url", url, "mcp"]
    assert [tool["name"] for tool in inspect(*stdio, "--method", "tools/list")["tools"]] == TOOLS
    query = ["--method", "tools/call", "--tool-name", "query", "--tool-arg"]
    assert "183772|" in inspect(*stdio, *query, f"sql={LIST}")["content"][0]["text"]
    refused = inspect(*stdio, *query, "sql=SELECT id FROM mentions WHERE duration = '30d'", "max_requests=1", status=5)
    assert refused["isError"]
    http = [f"http://{address}/mcp", "--transport", "http", "--header", "Authorization: Bearer bobs-token"]
    assert "183772|" in inspect(*http, *query, f"sql={LIST}")["content"][0]["text"]


with Served(command="mcp", users=True) as served:
    asyncio.run(over_stdio(served.base_url))
    asyncio.run(over_http(served.address))
    inspected(served.base_url, served.address)
print("the MCP clients passed")
