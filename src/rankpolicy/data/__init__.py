"""Ranking data: the dataset that all packages work on, and the formats it is read from and written to."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.data.arrays import concatenate as concatenate, from_arrays as from_arrays
    from rankpolicy.data.click_evidence import ClickEvidence as ClickEvidence, LabelKind as LabelKind
    from rankpolicy.data.click_table.table import (
        from_click_table as from_click_table,
        read_click_table as read_click_table,
    )
    from rankpolicy.data.dataset import RankingDataset as RankingDataset
    from rankpolicy.data.folds import Fold as Fold, read_folds as read_folds
    from rankpolicy.data.formats.dataset_files import read_dataset as read_dataset
    from rankpolicy.data.formats.feature_tables import (
        read_csv as read_csv,
        read_parquet as read_parquet,
        write_parquet as write_parquet,
    )
    from rankpolicy.data.formats.frames import from_frame as from_frame, to_frame as to_frame
    from rankpolicy.data.formats.letor import read_letor as read_letor, write_letor as write_letor
    from rankpolicy.data.formats.trec import (
        read_qrels as read_qrels,
        read_run as read_run,
        scores_of_run as scores_of_run,
        write_qrels as write_qrels,
        write_run as write_run,
    )
    from rankpolicy.data.sets.fair_synthetic import (
        make_fair_synthetic as make_fair_synthetic,
        make_job_candidates as make_job_candidates,
    )
    from rankpolicy.data.sets.german_credit import read_german_credit as read_german_credit
    from rankpolicy.data.sets.insuranceqa import read_insuranceqa as read_insuranceqa
    from rankpolicy.data.sets.ranking import make_ranking as make_ranking
    from rankpolicy.data.sets.shop import Shop as Shop, make_shop as make_shop
    from rankpolicy.data.sets.web_search import make_web_search as make_web_search
    from rankpolicy.data.sets.wikiqa import read_wikiqa as read_wikiqa
    from rankpolicy.data.splits import (
        QueryKFold as QueryKFold,
        k_fold as k_fold,
        split_by_time as split_by_time,
        split_queries as split_queries,
    )
    from rankpolicy.data.stored.letor import scan_letor as scan_letor
    from rankpolicy.data.stored.parquet import scan_parquet as scan_parquet
    from rankpolicy.data.texts.glove import WordVectors as WordVectors, read_glove as read_glove
    from rankpolicy.data.texts.hashing_vocabulary import HashingVocabulary as HashingVocabulary
    from rankpolicy.data.texts.question_answering import (
        from_texts as from_texts,
        read_question_answering as read_question_answering,
    )
    from rankpolicy.data.texts.texts import Texts as Texts
    from rankpolicy.data.texts.token_features import TextFeatures as TextFeatures
    from rankpolicy.data.texts.vocabulary import Vocabulary as Vocabulary, tokenize as tokenize

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
