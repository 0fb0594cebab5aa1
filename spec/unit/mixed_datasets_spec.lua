-- mixed_datasets_spec.lua: data sets made of several others, and of windows over rows.
local support = require "spec.support.init"
local flow = require "flow"

local Dataset = flow.data.Dataset

local function numbers(dataset)
  local list = {}
  for x in dataset:iter() do list[#list + 1] = type(x) == "string" and x or x:item() end
  return list
end

local function message_of(f, ...)
  local given, count = { ... }, select("#", ...)
  return support.message_of(function()
    local result = f(unpack(given, 1, count))
    return result
  end)
end

describe("choose_from_datasets", function()
  it("gives elements by the numbers of their data sets", function()
    local a, b = Dataset.range(0, 2), Dataset.range(10, 14)
    local order = Dataset.from_tensor_slices { 1, 0, 1, 0, 0, 1 }
    assert.same({ 10, 0, 11, 1 }, numbers(Dataset.choose_from_datasets({ a, b }, order)))
    assert.same({ 10, 0, 11, 1, 12 }, numbers(Dataset.choose_from_datasets({ a, b }, order, { stop_on_empty_dataset = false })))
    local texts = { Dataset.from_tensor_slices { "a", "b" }, Dataset.from_tensor_slices { "c" } }
    assert.same({ "c", "a", "b" }, numbers(Dataset.choose_from_datasets(texts, Dataset.from_tensor_slices { 1, 0, 0 })))
  end)

  it("refuses what does not fit", function()
    assert.matches("elements of dataset 2 are %(string {}%)", message_of(Dataset.choose_from_datasets,
      { Dataset.range(3), Dataset.from_tensor_slices { "a" } }, Dataset.range(2)))
    assert.matches("choice_dataset is a Dataset of numbers", message_of(Dataset.choose_from_datasets, { Dataset.range(3) }, 1))
    assert.matches("the list of datasets is empty", message_of(Dataset.choose_from_datasets, {}, Dataset.range(2)))
  end)
end)

describe("sample_from_datasets", function()
  it("takes parts as a tensor, as rejection_resample does", function()
    local list = { Dataset.range(3), Dataset.range(5, 9) }
    assert.same(numbers(Dataset.sample_from_datasets(list, { 0.25, 0.75 }, { seed = 3 })),
      numbers(Dataset.sample_from_datasets(list, flow.tensor { 0.25, 0.75 }, { seed = 3 })))
    local function resampled(target, start)
      local ds = Dataset.range(30):rejection_resample(function(x) return x % 2 end, target, start, 3)
      return numbers(ds:map(function(_, x) return x end))
    end
    assert.same(resampled({ 0.5, 0.5 }, { 0.75, 0.25 }), resampled(flow.tensor { 0.5, 0.5 }, flow.tensor { 0.75, 0.25 }))
  end)

  it("draws by weights, and the same for the same seed", function()
    local function sample(seed)
      return numbers(Dataset.sample_from_datasets({ Dataset.range(0, 400), Dataset.range(1000, 1400) },
        { weights = { 1, 3 }, seed = seed, stop_on_empty_dataset = true }))
    end
    local found = sample(1)
    assert.same(found, sample(1))
    assert.is_true(#found > 480 and #found < 600, #found)
    assert.equal(12, #numbers(Dataset.sample_from_datasets { Dataset.range(5), Dataset.range(7) }))
  end)
end)

describe("timeseries_dataset_from_array", function()
  local function rows(...)
    local list = {}
    for x, y in flow.timeseries_dataset_from_array(...):iter() do
      for i = 1, #x do list[#list + 1] = table.concat(x[i]:reshape({ -1 }):totable(), " ") .. (y and " -> " .. y[i]:item() or "") end
    end
    return list
  end
  local x = flow.arange(0, 20):to("float32"):reshape { 20, 1 }

  it("has Keras' windows and targets", function()      -- what keras.utils.timeseries_dataset_from_array gives for these
    assert.same({ "0 2 4 -> 0", "4 6 8 -> 4", "8 10 12 -> 8", "12 14 16 -> 12" },
      rows(x, flow.arange(0, 20), 3, { sequence_stride = 4, sampling_rate = 2, batch_size = 3 }))
    assert.same({ "2 3 4", "3 4 5", "4 5 6" }, rows(x, nil, 3, { batch_size = 4, start_index = 2, end_index = 7 }))
    assert.same({ "0 1 -> 5", "1 2 -> 6", "2 3 -> 7" }, rows(x, flow.arange(5, 8), 2))
  end)

  it("shuffles windows with their targets", function()
    local found = rows(x, flow.arange(0, 20), 2, { shuffle = true, seed = 3, batch_size = 5 })
    assert.equal(19, #found)
    local seen = {}
    for i, row in ipairs(found) do
      local first, target = row:match "^(%d+) %d+ %-> (%d+)$"
      assert.equal(first, target)
      seen[first] = i
    end
    assert.is_not.equal(1, seen["0"] == 1 and seen["1"] == 2 and seen["2"] == 3 and 1)
  end)

  it("says what does not fit", function()
    assert.matches("20 rows hold no window of 30 rows", message_of(flow.timeseries_dataset_from_array, x, nil, 30))
    assert.matches("start_index is a whole number from 0 to below the 20 rows", message_of(flow.timeseries_dataset_from_array, x, nil, 3,
      { start_index = 20 }))
  end)
end)

describe("rows of batches that may be smaller at the end", function()
  it("are cut, joined and counted by functions of map, which are then called for each batch", function()
    local function lists(dataset)
      local list = {}
      for x, y in dataset:iter() do list[#list + 1] = { x:totable(), y and y:totable() } end
      return list
    end
    local batches = Dataset.range(7):batch(3)
    assert.same({ { { 0, 1 }, { 1, 2 } }, { { 3, 4 }, { 4, 5 } }, { {}, {} } },
      lists(batches:map(function(x) return x[{ { 1, -2 } }], x[{ { 2, -1 } }] end)))
    assert.same({ { { 3 } }, { { 6 } } }, lists(batches:skip(1):map(function(x) return x[{ { 1, 1 } }] end)))
    assert.same({ { { 0, 1, 2, 0 } }, { { 3, 4, 5, 3 } }, { { 6, 6 } } },
      lists(batches:map(function(x) return flow.concat({ x, x[{ { 1, 1 } }] }, 1) end)))
    local text = message_of(function() return batches:map(function(x) return x:reshape { 5, 5 } end) end)
    assert.truthy(text:find("reshape", 1, true), text)
  end)
end)
