-- cli/missing_globals.lua: what a script is told that uses a global of Python's scripts without making it.

local ARRAYS = "arrays are tensors: flow.tensor, flow.zeros, flow.load_npy"

return {
  tf = "it is flow: local tf = flow", keras = "it is flow.keras: local keras = flow.keras", layers = "local layers = flow.layers",
  torch = "tensors, layers and models are in flow", np = ARRAYS, numpy = ARRAYS, plt = "curves and pictures are drawn by flow.plot",
  len = "a list has #list entries, a data set ds:len()",
}
