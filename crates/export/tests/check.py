"""Reads exported tables with DuckDB and pandas and compares them with what `lx` says.

usage: check.py PARQUET_FOLDER CSV_FOLDER JSONL_FOLDER LX.json ...
Each LX.json is the output of `lx --json`; its name is SIDE-PHASE.json, with the phase `all` for all phases.
"""

import json
import math
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq

parquet, csv, jsonl = (Path(folder) for folder in sys.argv[1:4])
lx = {Path(path).stem: json.loads(Path(path).read_text())["figures"] for path in sys.argv[4:]}
schema = {table["table"]: table for table in json.loads((parquet / "schema.json").read_text())}
assert set(schema) == {path.stem for path in parquet.glob("*.parquet")}, schema.keys()


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)


def table(name):
    return f"read_parquet('{parquet / name}.parquet')"


def sql(query):
    return duckdb.sql(query).fetchall()


# Every table says what its columns are, and both programs see the same rows.
for name, about in schema.items():
    metadata = pq.read_schema(parquet / f"{name}.parquet").metadata
    assert json.loads(metadata[b"polygraph.schema"]) == about, name
    names = [column["name"] for column in about["columns"]]
    frame = pd.read_parquet(parquet / f"{name}.parquet")
    assert list(frame.columns) == names, (name, frame.columns)
    columns = sql(f"DESCRIBE SELECT * FROM {table(name)}")
    assert [column[0] for column in columns] == names, (name, columns)
    ((rows,),) = sql(f"SELECT count(*) FROM {table(name)}")
    assert rows == len(frame), name
    kinds = {"integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR"}
    for column, seen in zip(about["columns"], columns):
        wanted = kinds.get(column["type"], "TIMESTAMP WITH TIME ZONE")
        assert seen[1] == wanted, (name, column, seen)

    # The other forms hold the same.
    texts = {column["name"]: str for column in about["columns"] if column["type"] == "text"}
    times = [column["name"] for column in about["columns"] if column["type"] == "timestamp"]
    of_csv = pd.read_csv(csv / f"{name}.csv", dtype=texts, keep_default_na=False, na_values=[""])
    lines = (jsonl / f"{name}.jsonl").read_text().splitlines()
    of_lines = pd.DataFrame([json.loads(line) for line in lines], columns=names)
    for other in (of_csv, of_lines):
        assert len(other) == len(frame), name
        for column in names:
            left, right = frame[column], other[column]
            if column in times:
                right = pd.to_datetime(right, utc=True, format="ISO8601")
            for a, b in zip(left, right):
                same = (pd.isna(a) or a == "") and (pd.isna(b) or b == "") or a == b
                assert same or close(float(a), float(b)), (name, column, a, b)

# Figures are those of lx, to the last digit.
figures = pd.read_parquet(parquet / "figures.parquet")
for key, expected in lx.items():
    side, phase = key.split("-")
    of_phase = figures["phase"].isna() if phase == "all" else figures["phase"] == phase
    rows = figures[(figures["side"] == side) & of_phase]
    found = dict(zip(rows["name"], rows["value"]))
    assert len(found) > 1000 and set(found) == set(expected), (key, len(found), set(found) ^ set(expected))
    for name, value in expected.items():
        same = pd.isna(found[name]) if value is None else found[name] == value
        assert same, (key, name, value, found[name])

# Intervals add up to phases, bins to counts; by SQL and by pandas.
intervals = pd.read_parquet(parquet / "intervals.parquet")
checked = 0
for key, expected in lx.items():
    side, phase = key.split("-")
    if phase == "all":
        continue
    names = {name.replace(".", "_"): name for name in expected}
    columns = [c for c in intervals.columns if c in names and c.endswith(("_count", "_sum", "_started", "_finished"))]
    sums = ", ".join(f"sum({column})" for column in columns)
    where = f"side = '{side}' AND phase = '{phase}'"
    by_sql = sql(f"SELECT {sums} FROM {table('intervals')} WHERE {where}")[0]
    frame = intervals[(intervals["side"] == side) & (intervals["phase"] == phase)]
    for column, value in zip(columns, by_sql):
        assert close(value, expected[names[column]]), (key, column, value, expected[names[column]])
        assert close(frame[column].sum(), expected[names[column]]), (key, column)
        checked += 1
    bins = sql(f"SELECT name, sum(count), min(first), max(last) FROM {table('histograms')} WHERE {where} GROUP BY name")
    for name, count, first, last in bins:
        assert count == expected[f"{name}.count"], (key, name, count)
        assert first <= expected[f"{name}.min"] * (1 + 1e-9) and last >= expected[f"{name}.max"] * (1 - 1e-9), (key, name)
        checked += 1
    (errors,) = sql(f"SELECT coalesce(sum(count), 0) FROM {table('errors')} e JOIN {table('runs')} r USING (log) WHERE r.side = '{side}' AND e.phase = '{phase}'")[0]
    assert errors == expected["errors.count"], (key, errors)
assert checked > 100, checked
(settings,) = sql(f"SELECT count(*) FROM {table('settings')} WHERE kind = 'setting'")[0]
assert settings > 5, settings
xacts = pd.read_parquet(parquet / "xacts.parquet")
# Each side takes its own sample of 20.
assert (xacts.groupby("log").size() == 20).all() and xacts["log"].nunique() == 2, xacts
assert (xacts["status"] == 200).all() and (xacts["lifetime"] >= 5).all(), xacts
print(f"{len(schema)} tables, {len(figures)} figures, {checked} sums")
