"""Expressions of a file as Spark columns: nothing unknown gets there, and what gets there means the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headway
from headway.connectors.spark_columns import FUNCTIONS, check_select, select_columns
from headway.errors import ExpressionError
from headway.expressions.library.table import BUILTINS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTILE = [
    "reflect('java.lang.System', 'load', '/x.so') as a",
    "Reflect('java.lang.System', 'load', '/x.so')",
    "java_method('java.lang.System', 'load', '/x.so') as a",
    "try_reflect('java.lang.System', 'load', '/x.so') as a",
    "`reflect`('java.lang.System', 'load', '/x.so') as a",
    "builtin.reflect('java.lang.System', 'load', '/x.so') as a",
    "system.builtin.reflect('java.lang.System', 'load', '/x.so') as a",
    "concat('x', reflect('java.lang.System', 'load', '/x.so')) as a",
    "case when reflect('a', 'b') = 'x' then 1 end as a",
    "cast(reflect('a', 'b') as int) as a",
    "value in (1, reflect('a', 'b'))",
    "value between 1 and reflect('a', 'b')",
    "value like reflect('a', 'b')",
    "if(true, 1, reflect('a', 'b'))",
    "array(reflect('a', 'b'))[0]",
    "from_json(reflect('a', 'b'), 'a int').a",
    "struct(reflect('a', 'b') as x).x",
    "extract(day from reflect('a', 'b'))",
    "'x' || reflect('a', 'b')",
    "value + interval 1 day + reflect('a', 'b')",
    "from_json('{}', 'a int default reflect(\"a\", \"b\")')",
    "from_json('{}', concat('a ', 'int'))",
    "from_json('{}', schema_of_json(reflect('a', 'b')))",
    "transform(array(1), x -> reflect('a', 'b'))",
    "(select reflect('a', 'b'))",
    "exists(select 1)",
    "value from x",
    "value; drop table t",
    "1 union select 2",
    "sum(value) over (order by value)",
    "xpath('<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>', 'a')",
    "raise_error('x')",
    "http_get('x')",
    "read_files('/etc')",
    "repeat('x', 2000000000)",
    "lpad('x', value, 'y')",
    ":x",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_not_known_does_not_pass(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        check_select(["value", text])
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_functions_that_reach_beyond_their_arguments_are_not_on_the_list() -> None:
    beyond = "reflect java_method try_reflect xpath xpath_string schema_of_json call_function raise_error assert_true"
    assert not FUNCTIONS & set(beyond.split())


def test_a_deep_expression_is_refused() -> None:
    with pytest.raises(ExpressionError):
        check_select(["(" * 5000 + "1" + ")" * 5000])


MEANT = [
    "value",
    "*",
    "VALUE as v",
    "`value` as `odd ``name`",
    "cast(value as string) as text",
    "cast(word as binary) as bytes",
    "cast(cast(word as binary) as string) as text",
    "try_cast(word as int) as n",
    "int(value / 2) as half",
    "bigint(value) as b, string(value) as s, double(value) as d",
    "-value as minus, -5 as five, -9223372036854775808 as lowest, - 1.50 as exact",
    "1.50 as exact, 0.05 as small, 1e3 as d, 5000000000 as big, 10L as ten",
    "value + 1 as a, value - 1 as b, value * 2 as c, value / 2 as d, value % 2 as e, value div 2 as f",
    "value & 1 as a, value | 1 as b, value ^ 1 as c, ~value as d",
    "value > 1 and not value > 5 or value is null as x",
    "value = 1 as a, value <> 1 as b, value <=> null as c, value is not null as d, (value > 1) is true as e",
    "value in (1, 2, 3) as a, value not in (1) as b, value between 1 and 2 as c",
    "word like 'a%' as a, word not like '_b' as b, word rlike 'a+' as c, word ilike 'A%' as d",
    "word like 'a!%' escape '!' as a",
    "case when value > 1 then 'x' else 'y' end as a, case value when 1 then 'one' end as b",
    "if(value > 1, 'x', null) as a, coalesce(null, word) as b",
    "word || '-' || word as a, concat(word, 'x') as b, upper('q') as c, lpad(word, 5, '*') as d",
    'from_json(\'{"a": 1, "b": [{"c": "x"}]}\', \'a int, b array<struct<c: string>>\') as j',
    "from_json('{\"a\": 1}', 'a int').a as a, from_json('[1, 2]', 'array<int>')[1] as b",
    "get_json_object('{\"a\": 1}', '$.a') as a, split(word, 'b')[0] as b, element_at(array(1, 2), 2) as c",
    "named_struct('x', value).x as a, struct(value as x).x as b",
    "timestamp '2024-01-31 00:00:00' as a, date '2024-01-31' as b, to_timestamp('2024-01-31 01:02:03') as c",
    "timestamp '2024-01-31 00:00:00' + interval 1 hour as a, date '2024-01-31' + interval 1 day as b",
    "date '2024-01-31' + interval 1 month as a, date '2024-01-31' - interval 2 weeks as b",
    "extract(year from date '2024-01-31') as a, date_trunc('hour', timestamp '2024-01-31 01:02:03') as b",
    "date_format(timestamp '2024-01-31 01:02:03', 'HH:mm') as a, unix_micros(timestamp '2024-01-31 01:02:03') as b",
    "md5(word) as a, sha2(word, 256) as b, base64(cast(word as binary)) as c, hex(value) as d",
    "'it\\'s' as a, 'tab\\tand \\\\ backslash' as b, '`' as c, 'ü' as d",
]


def test_what_passes_means_what_spark_s_own_sql_means(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table({"value": pa.array([1, 2, None, 7]), "word": ["ab", "Xb", None, "12"]}))
    made = frame.select(*select_columns(MEANT, frame.columns))
    frame.createOrReplaceTempView("meant")
    wanted = spark.sql(f"select {', '.join(MEANT)} from meant")  # one query: each costs a tenth of a second and more
    assert [(one.name, one.dataType) for one in made.schema] == [(one.name, one.dataType) for one in wanted.schema]
    names = [f"{at}: {name}" for at, name in enumerate(made.columns)]
    assert made.toDF(*names).toArrow().to_pylist() == wanted.toDF(*names).toArrow().to_pylist()


def test_no_text_is_given_to_spark_as_sql() -> None:
    """Everywhere in the package: what parses SQL, or code, is not called."""
    root = Path(headway.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                where = f"{path.relative_to(root)}:{node.lineno}"
                assert node.func.attr not in {"expr", "selectExpr"}, where
                owner = ast.unparse(node.func.value)
                assert node.func.attr != "sql" or not owner.endswith(("session", "spark")), where


def test_the_document_lists_the_functions() -> None:
    text = (Path(headway.__file__).parents[1] / "docs" / "safety.md").read_text()
    listed = text.partition("and these of Spark's pass:")[2].partition("\n## ")[0]
    assert set(re.findall(r"\w+", listed)) | set(BUILTINS) == FUNCTIONS
