from ..table import Table
TABLES: dict[str, Table] = {}
