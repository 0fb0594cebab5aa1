-- choice.lua: Dataset.choose_from_datasets and Dataset.sample_from_datasets: elements of several data sets, by a data set of their numbers
-- or at random. Elements are handed over by the thread that reads.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local random = require "flow.tensor.random"
local elements = require "flow.data.elements"

local raise = errors.raise

-- The signature of elements of all of them: sizes that differ are -1.
local function joined_specs(Dataset, what, datasets)
  local specs
  for i = 1, errors.check_list(what, datasets) do
    if not object.is(datasets[i], Dataset) then raise("%s: entry %d is %s, expected a Dataset", what, i, errors.describe(datasets[i])) end
    local own = datasets[i].element_spec
    specs = specs or own
    local same = #own == #specs
    for k, spec in ipairs(same and own or {}) do
      same = same and spec.dtype == specs[k].dtype and #spec.shape == #specs[k].shape
      for axis = 1, same and #spec.shape or 0 do
        if spec.shape[axis] ~= specs[k].shape[axis] then specs[k].shape[axis] = -1 end
      end
    end
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

-- The data set of elements of `datasets` in the order of next_number(), which each pass gets from begin(); nil: the end.
local function choose(Dataset, what, datasets, stops, begin)
  local specs = joined_specs(Dataset, what, datasets)
  return Dataset.from_generator(function()
    local next_number, passes, left = begin(), {}, {}
    for i, dataset in ipairs(datasets) do passes[i], left[i] = dataset:iter(), true end
    return function()
      while true do
        local number = next_number(left)
        if number == nil then return nil end
        if not passes[number] then raise("%s: number %s, there are datasets 0 to %d", what, tostring(number - 1), #datasets - 1) end
        local values = { passes[number]() }
        if values[1] ~= nil then return unpack(values) end
        left[number] = false
        if stops then return nil end
      end
    end
  end, { output_signature = specs })
end

return function(Dataset)
  -- choice_dataset: scalars, numbers of datasets from 0.
  signature.takes "datasets: list, choice_dataset, stop_on_empty_dataset: boolean = true"
  function Dataset.choose_from_datasets(datasets, choices, stops)
    local what = "choose_from_datasets"
    if not object.is(choices, Dataset) then
      raise("%s: choice_dataset is a Dataset of numbers from 0, got %s", what, errors.describe(choices))
    end
    return choose(Dataset, what, datasets, stops, function()
      local pass = choices:iter()
      return function(left)
        local any = false
        for _, is_left in ipairs(left) do any = any or is_left end
        local number = any and pass()
        return number and number:item() + 1 or nil
      end
    end)
  end

  -- weights: how likely each is, all alike without them. Without stop_on_empty_dataset the others go on when one has ended.
  signature.takes "datasets: list, weights?: list, seed?: whole, stop_on_empty_dataset: boolean = false"
  function Dataset.sample_from_datasets(datasets, weights, seed, stops)
    local what = "sample_from_datasets"
    for i = 1, weights and #datasets or 0 do
      if type(weights[i]) ~= "number" or weights[i] < 0 then
        raise("%s: weights has a number from 0 for each of the %d datasets, entry %d is %s", what, #datasets, i,
          errors.describe(weights[i]))
      end
    end
    return choose(Dataset, what, datasets, stops, function()
      local drawn, at, draws = nil, 0, 0
      local function uniform()
        at = at + 1
        if not drawn or at > #drawn then
          drawn, at = random.uniform({ 256 }, { seed = seed and seed + draws or nil }):totable(), 1
          draws = draws + 1
        end
        return drawn[at]
      end
      return function(left)
        local total = 0
        for i in ipairs(datasets) do total = total + (left[i] and (weights and weights[i] or 1) or 0) end
        if total <= 0 then return nil end
        local target, sum, last = uniform() * total, 0, nil
        for i in ipairs(datasets) do
          local weight = left[i] and (weights and weights[i] or 1) or 0
          sum, last = sum + weight, weight > 0 and i or last
          if weight > 0 and target < sum then return i end
        end
        return last
      end
    end)
  end
end
