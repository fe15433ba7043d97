// Two clients from the npm registry. The first supports login and queries, the second also lists tables. Neither binds parameters.
// npm.js ADDRESS: all checks; npm.js ADDRESS long: one long query per client, to be killed.
const assert = require("node:assert");
const { Client } = require("@lancedb/arrow-flight-sql-client");
const { FlightSQLClient } = require("@firetiger-oss/flight-sql-client");

const [address, long] = process.argv.slice(2);
const [host, port] = address.split(":");
const sql = long
  ? "SELECT * FROM mentions WHERE aid = '183772' AND duration = '30d' AND reach >= 0"
  : "SELECT source, count(*) AS n FROM mentions WHERE aid = '183772' GROUP BY source ORDER BY source";

async function lancedb() {
  const client = await Client.connect({ host: address, username: "ada", password: "swordfish", insecure: true });
  const rows = await (await client.query(sql)).collectToObjects();
  assert(rows.length > 1 && rows[0].source !== undefined, "no rows");
  await assert.rejects(async () => (await client.query("SELECT nothing FROM mentions")).collectToObjects(), /nothing/);
  return rows.length;
}

async function firetiger() {
  const client = new FlightSQLClient({ host, port: Number(port), plaintext: true, token: "bobs-token" });
  const tables = await client.getTables("savedsearch", "v4", undefined, ["table"]);
  assert(tables.some((table) => table.tableName === "mentions" && table.tableType === "TABLE"), "no tables");
  const table = await client.execute(sql);
  assert(table.numRows > 1);
  await assert.rejects(() => client.execute("SELECT nothing FROM mentions"), /nothing/);
  await client.close();
  return table.numRows;
}

Promise.all([lancedb(), firetiger()]).then(
  ([one, other]) => process.exit(one === other ? 0 : 1),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
