"""Rankers of features as ONNX files: the scaling, network, linear or tree graph, checked and written."""
