-- errors/hints.lua: what the flowlua program adds to a message of Lua itself that follows from a habit of another language: a global of
-- Python's scripts, or a field that is called as a method.

local ARRAYS = "arrays are tensors: flow.tensor, flow.zeros, flow.load_npy"

local GLOBALS = {
  tf = "it is flow: local tf = flow", keras = "it is flow.keras: local keras = flow.keras", layers = "local layers = flow.layers",
  torch = "tensors, layers and models are in flow", np = ARRAYS, numpy = ARRAYS, plt = "curves and pictures are drawn by flow.plot",
  len = "a list has #list entries, a data set ds:len()",
}

-- What stands in the place of a method of this name, where x.name alone is not what was meant.
local METHODS = {
  size = "x.size is how many elements there are, x.shape[1] the length of the first axis",
  dtype = "x.dtype is a text, x:to 'int32' converts",
}

local hints = {}

-- What to write after a message; "" if nothing is known of it.
function hints.of(message)
  local name = message:match "^[^\n]-: attempt to %a+ global '([%w_]+)' %(a nil value%)$"
  local known = name and GLOBALS[name]
  local method, kind = message:match "^[^\n]-: attempt to call method '([%w_]+)' %(a (%a+) value%)$"
  if method and (kind == "number" or kind == "string" or kind == "boolean") then
    known = METHODS[method] or ("it is a field: x.%s, without a call"):format(method)
  end
  return known and ": " .. known or ""
end

return hints
