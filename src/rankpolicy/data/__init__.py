"""Ranking data: the dataset every package works on, and the formats it is read from and written to."""

from typing import TYPE_CHECKING

from rankpolicy.data.dataset import RankingDataset, concatenate, from_arrays
from rankpolicy.data.fair_synthetic import make_fair_synthetic
from rankpolicy.data.files import read_dataset
from rankpolicy.data.folds import Fold, read_folds
from rankpolicy.data.frames import from_frame, to_frame
from rankpolicy.data.glove import WordVectors, read_glove
from rankpolicy.data.letor import read_letor, write_letor
from rankpolicy.data.parquet import read_parquet, write_parquet
from rankpolicy.data.question_answering import from_texts, read_question_answering
from rankpolicy.data.splits import QueryKFold, k_fold, split_by_time, split_queries
from rankpolicy.data.synthetic import make_web_search
from rankpolicy.data.text_features import TextFeatures
from rankpolicy.data.texts import Texts
from rankpolicy.data.trec import read_qrels, read_run, write_qrels, write_run
from rankpolicy.data.vocabulary import Vocabulary, tokenize
from rankpolicy.optional import loaded_later

if TYPE_CHECKING:
    from rankpolicy.data.click_table import from_click_table, read_click_table
    from rankpolicy.data.german_credit import read_german_credit
    from rankpolicy.data.hashing_vocabulary import HashingVocabulary
    from rankpolicy.data.insuranceqa import read_insuranceqa
    from rankpolicy.data.wikiqa import read_wikiqa

__getattr__ = loaded_later(
    "rankpolicy.data",
    {
        "HashingVocabulary": "rankpolicy.data.hashing_vocabulary",
        "from_click_table": "rankpolicy.data.click_table",
        "read_click_table": "rankpolicy.data.click_table",
        "read_german_credit": "rankpolicy.data.german_credit",
        "read_insuranceqa": "rankpolicy.data.insuranceqa",
        "read_wikiqa": "rankpolicy.data.wikiqa",
    },
)

__all__ = [
    "Fold",
    "HashingVocabulary",
    "QueryKFold",
    "RankingDataset",
    "TextFeatures",
    "Texts",
    "Vocabulary",
    "WordVectors",
    "concatenate",
    "from_arrays",
    "from_click_table",
    "from_frame",
    "from_texts",
    "k_fold",
    "make_fair_synthetic",
    "make_web_search",
    "read_click_table",
    "read_dataset",
    "read_folds",
    "read_german_credit",
    "read_glove",
    "read_insuranceqa",
    "read_letor",
    "read_parquet",
    "read_qrels",
    "read_question_answering",
    "read_run",
    "read_wikiqa",
    "split_by_time",
    "split_queries",
    "to_frame",
    "tokenize",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]
