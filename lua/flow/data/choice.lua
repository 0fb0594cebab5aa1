-- choice.lua: Dataset.choose_from_datasets and Dataset.sample_from_datasets: elements of several data sets, by a data set of their numbers
-- or at random. Elements are handed over by the thread that reads.
--
-- Both are one stage (choose), in Lua: next_number(left) says which data set gives the next element, counted from 1, and left[i] is false
-- once data set i has ended.

local errors = require "flow.errors"
local native = require "flow.ffi"
local signature = require "flow.signature"
local elements = require "flow.data.elements"
local structure = require "flow.data.structure"

local C, raise = native.C, errors.raise

-- The signature of elements of all of them: sizes that differ are -1. Raises unless all are data sets whose elements have the same number
-- of components, dtypes, ranks and structure.
local function joined_specs(internal, what, datasets)
  local specs
  for i = 1, errors.check_list(what, datasets) do
    if not internal.is(datasets[i]) then raise("%s: entry %d is %s, expected a Dataset", what, i, errors.describe(datasets[i])) end
    local own = datasets[i]._specs
    specs = specs or own
    local same = #own == #specs
    for k, spec in ipairs(same and own or {}) do
      same = same and spec.dtype == specs[k].dtype and #spec.shape == #specs[k].shape
      for axis = 1, same and #spec.shape or 0 do
        if spec.shape[axis] ~= specs[k].shape[axis] then specs[k].shape[axis] = -1 end
      end
    end
    same = same and structure.equal(datasets[i]._structure, datasets[1]._structure)
    if not same then
      local texts = {}
      for k, spec in ipairs(own) do texts[k] = elements.spec_text(spec) end
      raise("%s: elements of dataset %d are (%s), those of the first one differ in number, dtype or rank", what, i,
        table.concat(texts, ", "))
    end
  end
  if not specs then raise("%s: the list of datasets is empty", what) end
  return specs
end

-- The data set of elements of `datasets` in the order of next_number(left), which each pass gets from begin(pull); nil: the end. more: a
-- data set that begin() pulls from, or nil. ends(i): dataset i may end, or is never taken.
local function choose(internal, what, datasets, more, stops, begin, ends)
  local specs, inputs = joined_specs(internal, what, datasets), { unpack(datasets) }
  inputs[#inputs + 1] = more
  -- With stops the first end ends all, so elements go on for ever only if all data sets do; without it one such data set is enough.
  local endless = 0
  for i in ipairs(datasets) do endless = endless + (ends(i) and 0 or 1) end
  local cardinality = (stops and endless == #datasets or not stops and endless > 0) and -1 or -2
  return internal.transform(inputs, specs, datasets[1]._structure, cardinality, function(pull, give)
    local next_number, left = begin(pull), {}
    for i in ipairs(datasets) do left[i] = true end
    while true do
      local number = next_number(left)
      if number == nil then return end
      if left[number] == nil then raise("%s: number %s, there are datasets 0 to %d", what, tostring(number - 1), #datasets - 1) end
      local components = left[number] and pull(number)
      if components then
        give(components)
      else
        left[number] = false
        if stops then return end
      end
    end
  end)
end

return function(Dataset, internal)
  -- choice_dataset: scalars, numbers of datasets from 0.
  signature.takes "datasets: list, choice_dataset, stop_on_empty_dataset: boolean = true"
  function Dataset.choose_from_datasets(datasets, choices, stops)
    local what = "choose_from_datasets"
    if not internal.is(choices) then
      raise("%s: choice_dataset is a Dataset of numbers from 0, got %s", what, errors.describe(choices))
    end
    return choose(internal, what, datasets, choices, stops, function(pull)
      return function(left)
        local any = false
        for _, is_left in ipairs(left) do any = any or is_left end
        local number = any and pull(#datasets + 1)
        return number and number[1]:item() + 1 or nil
      end
    end, function(i) return choices:cardinality() ~= -1 or datasets[i]:cardinality() ~= -1 end)
  end

  -- weights: how likely each is, all alike without them; each pass draws the same. Without stop_on_empty_dataset the others go on when one
  -- has ended.
  signature.takes "datasets: list, weights?: list|tensor, seed?: whole, stop_on_empty_dataset: boolean = false"
  function Dataset.sample_from_datasets(datasets, weights, seed, stops)
    local what = "sample_from_datasets"
    if native.is_tensor(weights) then weights = weights:reshape(-1):totable() end
    for i = 1, weights and math.max(#datasets, #weights) or 0 do
      if type(weights[i]) ~= "number" or not (weights[i] >= 0 and weights[i] < math.huge) or i > #datasets then
        raise("%s: weights has a number from 0 for each of the %d datasets, entry %d is %s", what, #datasets, i,
          errors.describe(weights[i]))
      end
    end
    seed = seed or C.flow_context_next_seed(native.context) % 2 ^ 31
    if weights and #datasets > 1 then      -- those that are never taken count for nothing
      local specs, taken, parts = joined_specs(internal, what, datasets), {}, {}
      for i, dataset in ipairs(datasets) do
        if weights[i] > 0 then taken[#taken + 1], parts[#parts + 1] = dataset, weights[i] end
      end
      local same = #taken == 1
      for i, spec in ipairs(same and specs or {}) do
        same = same and elements.spec_text(spec) == elements.spec_text(taken[1]._specs[i])
      end
      if same then return taken[1] end
    end
    return choose(internal, what, datasets, nil, stops, function()
      local uniform = internal.uniforms(seed)
      return function(left)
        local total = 0
        for i in ipairs(datasets) do total = total + (left[i] and (weights and weights[i] or 1) or 0) end
        if total <= 0 then return nil end
        local target, sum, last = uniform() * total, 0, nil      -- last: if rounding leaves the sum below the target
        for i in ipairs(datasets) do
          local weight = left[i] and (weights and weights[i] or 1) or 0
          sum, last = sum + weight, weight > 0 and i or last
          if weight > 0 and target < sum then return i end
        end
        return last
      end
    end, function(i) return weights and weights[i] == 0 or datasets[i]:cardinality() ~= -1 end)
  end
end
