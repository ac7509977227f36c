"""Ranking data: the dataset that all packages work on, and the formats it is read from and written to."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.data.arrays import concatenate, from_arrays
    from rankpolicy.data.click_evidence import ClickEvidence, LabelKind
    from rankpolicy.data.click_table.table import from_click_table, read_click_table
    from rankpolicy.data.dataset import RankingDataset
    from rankpolicy.data.folds import Fold, read_folds
    from rankpolicy.data.formats.dataset_files import read_dataset
    from rankpolicy.data.formats.feature_tables import read_csv, read_parquet, write_parquet
    from rankpolicy.data.formats.frames import from_frame, to_frame
    from rankpolicy.data.formats.letor import read_letor, write_letor
    from rankpolicy.data.formats.trec import read_qrels, read_run, scores_of_run, write_qrels, write_run
    from rankpolicy.data.sets.fair_synthetic import make_fair_synthetic
    from rankpolicy.data.sets.german_credit import read_german_credit
    from rankpolicy.data.sets.insuranceqa import read_insuranceqa
    from rankpolicy.data.sets.job_candidates import make_job_candidates
    from rankpolicy.data.sets.ranking import make_ranking
    from rankpolicy.data.sets.shop import Shop, make_shop
    from rankpolicy.data.sets.web_search import make_web_search
    from rankpolicy.data.sets.wikiqa import read_wikiqa
    from rankpolicy.data.splits import QueryKFold, k_fold, split_by_time, split_queries
    from rankpolicy.data.stored.letor import scan_letor
    from rankpolicy.data.stored.parquet import scan_parquet
    from rankpolicy.data.texts.glove import WordVectors, read_glove
    from rankpolicy.data.texts.hashing_vocabulary import HashingVocabulary
    from rankpolicy.data.texts.question_answering import from_texts, read_question_answering
    from rankpolicy.data.texts.texts import Texts
    from rankpolicy.data.texts.token_features import TextFeatures
    from rankpolicy.data.texts.vocabulary import Vocabulary, tokenize

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "ClickEvidence",
    "Fold",
    "HashingVocabulary",
    "LabelKind",
    "QueryKFold",
    "RankingDataset",
    "Shop",
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
    "make_job_candidates",
    "make_ranking",
    "make_shop",
    "make_web_search",
    "read_click_table",
    "read_csv",
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
    "scan_letor",
    "scan_parquet",
    "scores_of_run",
    "split_by_time",
    "split_queries",
    "to_frame",
    "tokenize",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]
