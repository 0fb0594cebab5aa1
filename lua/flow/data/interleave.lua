-- interleave.lua: stages that make several elements of each: interleave and flat_map, whose function gives a Dataset for an element.

local errors = require "flow.errors"
local native = require "flow.ffi"
local signature = require "flow.signature"
local Iterator = require "flow.data.iterator"
local structure = require "flow.data.structure"
local elements = require "flow.data.elements"

local C, raise = native.C, errors.raise

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
    local specs, own, like = internal.learn(self, function(values)
      local made = dataset_of(values)
      return made._specs, made._structure, made
    end)
    if not specs then return with_structure(make({ self }, C.flow_dataset_take, self._handle, 0, out), self._structure) end
    -- C learns what elements are from a data set: from the one that f gave, unless sizes vary that do not vary there.
    local pattern = like
    for i, spec in ipairs(like._specs) do
      if elements.spec_text(spec) ~= elements.spec_text(specs[i]) then
        pattern = internal.transform({}, specs, own, like:cardinality(), function() end)
      end
    end
    local callback = Iterator._register_function(dataset_of, is_text)
    local dataset = make({ self }, C.flow_dataset_interleave, self._handle, callback.id, pattern._handle, cycle, block_length,
      parallel ~= 0 and 1 or 0, out)
    rawset(dataset, "_callback", callback)
    return with_structure(dataset, own, like._window)
  end

  -- The Datasets that f gives, one after the other.
  signature.takes "map_func?: any"
  function Dataset:flat_map(f)
    return self:interleave(f, { cycle_length = 1 })
  end
end
