"""Static tables and stored data sets: small data to join streams with, or to be streamed once."""

from headway.tables.datasets import DataSet as DataSet
from headway.tables.datasets import Opened as Opened
from headway.tables.datasets import connect as connect
from headway.tables.datasets import data_schema as data_schema
from headway.tables.datasets import data_table as data_table
from headway.tables.datasets import is_data as is_data
from headway.tables.datasets import is_folder as is_folder
from headway.tables.datasets import lookup as lookup
from headway.tables.datasets import permit_data as permit_data
from headway.tables.datasets import read_data as read_data
from headway.tables.datasets import register_data_kind as register_data_kind
from headway.tables.inferring import csv_options as csv_options
from headway.tables.inferring import infer_csv as infer_csv
from headway.tables.inferring import infer_json_lines as infer_json_lines
from headway.tables.inferring import keep_texts as keep_texts
from headway.tables.loading import load_table as load_table
from headway.tables.loading import table_schema as table_schema
from headway.tables.references import is_name as is_name
from headway.tables.references import register_table_loader as register_table_loader
from headway.tables.references import split_quoted as split_quoted
from headway.tables.references import with_types as with_types
from headway.tables.statics import Statics as Statics
from headway.tables.statics import load_static as load_static
from headway.tables.statics import point_data as point_data
from headway.tables.statics import static_schema as static_schema
