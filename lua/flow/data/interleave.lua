-- interleave.lua: stages that make several elements of each: interleave and flat_map, whose function gives a Dataset for an element.

local errors = require "flow.errors"
local native = require "flow.ffi"
local signature = require "flow.signature"
local Iterator = require "flow.data.iterator"
local structure = require "flow.data.structure"
local elements = require "flow.data.elements"

local C, raise = native.C, errors.raise

-- What f gives for an element of zeros and empty texts; nil if it fails.
local function of_zeros(specs, f)
  local ok, result = pcall(f, elements.blank(specs))
  return ok and result or nil
end

return function(Dataset, internal, make, out, with_structure)
  -- Each element becomes the Dataset that f gives for it; cycle_length of them are open and give block_length elements in turn.
  -- f runs in Lua, with values, by the thread that reads; num_parallel_calls lets a thread work ahead on every open Dataset. If there are
  -- no elements, what later stages are traced with is learnt from zeros, if f takes them.
  signature.takes "map_func, cycle_length?: integer, block_length: count = 1, num_parallel_calls?, deterministic?: boolean"
  function Dataset:interleave(f, cycle, block_length, num_parallel_calls)
    local what = "interleave"
    if type(f) ~= "function" then raise("%s: expected a function that returns a Dataset, got %s", what, errors.describe(f)) end
    local parallel = internal.parallel_calls(what, num_parallel_calls)
    if cycle == nil or cycle == internal.AUTOTUNE then cycle = math.max(C.flow_threads(), 1) end
    local is_text = {}
    for i, spec in ipairs(self._specs) do is_text[i] = spec.dtype == "string" end
    -- The Dataset for an element, of its components.
    local function dataset_of(values)
      local packed, count = structure.pack(self._structure, self._window and self._window(values) or values)
      local made = f(unpack(packed, 1, count))
      if not internal.is(made) then raise("%s: the function returned %s, expected a Dataset", what, errors.describe(made)) end
      return made
    end
    local first = internal.first(self)
    local like      -- a data set that f gives: C learns from it what elements are
    if first then like = dataset_of(first) else like = of_zeros(self._specs, dataset_of) end
    if not like then return with_structure(make({ self }, C.flow_dataset_take, self._handle, 0, out), self._structure) end
    local callback = Iterator._register_function(dataset_of, is_text)
    local dataset = make({ self }, C.flow_dataset_interleave, self._handle, callback.id, like._handle, cycle, block_length,
      parallel ~= 0 and 1 or 0, out)
    rawset(dataset, "_callback", callback)
    return with_structure(dataset, like._structure, like._window)
  end

  -- The Datasets that f gives, one after the other.
  function Dataset:flat_map(f)
    return self:interleave(f, { cycle_length = 1 })
  end
end
