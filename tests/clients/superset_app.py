"""An empty Superset with a user, configured as the documentation says."""

import contextlib
import io
import os
import pathlib
import tempfile

FOLDER = tempfile.TemporaryDirectory()
RECIPE = pathlib.Path(__file__).parents[2] / "docs" / "superset_config.py"
CONFIG = pathlib.Path(FOLDER.name, "superset_config.py")
CONFIG.write_text(
    RECIPE.read_text()
    + f"""
SECRET_KEY = "only for tests, and long enough for the signing algorithm"
SQLALCHEMY_DATABASE_URI = "sqlite:///{FOLDER.name}/superset.db"
WTF_CSRF_ENABLED = False
"""
)
os.environ["SUPERSET_CONFIG_PATH"] = str(CONFIG)

from superset.app import create_app  # noqa: E402 (the import reads the configuration)


def new_app():
    """Returns the application with a fresh database, in which `ada` with the password `swordfish` may do everything."""
    app = create_app()
    with app.app_context():
        import flask_migrate
        from superset.extensions import appbuilder

        migrations = pathlib.Path(__import__("superset").__file__).parent / "migrations"
        with contextlib.redirect_stdout(io.StringIO()):
            flask_migrate.upgrade(directory=str(migrations))
        appbuilder.add_permissions(update_perms=True)
        appbuilder.sm.sync_role_definitions()
        appbuilder.sm.add_user("ada", "Ada", "Lovelace", "ada@example.com", appbuilder.sm.find_role("Admin"), "swordfish")
    return app
