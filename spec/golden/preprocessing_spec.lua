-- preprocessing_spec.lua: layers for strings, numbers of words, hashes and bins give what Keras' give (preprocessing.py), eagerly, in
-- ds:map and in models that Keras wrote.
local support = require "spec.support.init"
local flow = require "flow"
local manifest = "spec/golden/manifest/preprocessing"
local files, cases = dofile(manifest .. "/files.lua")[1], {}
for _, file in ipairs(flow.io.gfile.listdir(manifest)) do
  for _, case in ipairs(file ~= "files.lua" and dofile(manifest .. "/" .. file) or {}) do cases[#cases + 1] = case end
end

local Dataset = flow.data.Dataset
local folder = "spec/golden/keras"

local function options_of(case)
  local options = {}
  for name, value in pairs(case.options) do options[name] = value end
  return options
end

-- A case's value as the layer gets it.
local function value_of(case, value)
  local first = value
  while type(first) == "table" do first = first[1] end
  if type(first) == "string" then return value end
  return flow.tensor(value, { dtype = case.dtype == "string" and "int64" or case.dtype })
end

local function assert_result(reference, found, name)
  if type(found) == "string" then found = flow.tensor { found }:reshape {} end
  local shape = {}
  for i = 1, #found.shape do shape[i] = found.shape[i] end
  assert.same(reference.shape, shape, name)
  assert.equal(reference.dtype, found.dtype, name)
  local values = found.size > 0 and found:reshape { -1 }:totable() or {}
  for i, value in ipairs(reference.values) do
    if type(value) == "string" then assert.equal(value, values[i], name)
    else assert.is_true(math.abs(value - values[i]) <= 1e-6 * math.max(1, math.abs(value)), name .. ": value " .. i) end
  end
end

local function describe_case(i, case)
  local parts = {}
  for name, value in pairs(case.options) do parts[#parts + 1] = name .. "=" .. tostring(value) end
  table.sort(parts)
  return ("%d %s %s"):format(i, case.layer, table.concat(parts, " "))
end

local function make(case)
  local layer = flow.layers[case.layer](options_of(case))
  if case.adapt then layer:adapt(value_of(case, case.adapt)) end
  return layer
end

describe("preprocessing layers", function()
  it("have Keras' vocabularies and results, eagerly", function()
    for i, case in ipairs(cases) do
      local name, layer = describe_case(i, case), make(case)
      if case.vocabulary then
        local found = layer:get_vocabulary()
        for k, token in ipairs(case.vocabulary) do assert.equal(token, found[k], name) end
        assert.equal(#case.vocabulary, #found, name)
      end
      for k, boundary in ipairs(case.boundaries or {}) do assert.near(boundary, layer.bin_boundaries[k], 1e-5) end
      for _, call in ipairs(case.calls) do
        local input = call.input
        if call.several then
          input = {}
          for k, value in ipairs(call.input) do input[k] = value_of(case, value) end
        else
          input = value_of(case, input)
        end
        if not (call.several and #call.result.shape == 0) then assert_result(call.result, layer(input), name) end
      end
    end
  end)

  it("give the same in ds:map, on batches", function()
    local seen = 0
    for i, case in ipairs(cases) do
      local layer = make(case)
      for _, call in ipairs(case.calls) do
        if type(call.input) == "table" and (not call.several or type(call.input[1]) == "table") then
          local source
          if call.several then
            local list = {}
            for k, value in ipairs(call.input) do list[k] = Dataset.from_tensors { value_of(case, value) } end
            source = Dataset.zip(list):map(function(...) return layer { ... } end)
          else
            source = Dataset.from_tensors { value_of(case, call.input) }:map(function(x) return layer(x) end)
          end
          for found in source:iter() do
            assert_result(call.result, found, describe_case(i, case))
            seen = seen + 1
          end
        end
      end
    end
    assert.is_true(seen > 200)
  end)

  it("read what Keras wrote, and write it again", function()
    local inputs = { text_model = files.reviews, lookups = { flow.tensor(files.words), flow.tensor(files.numbers, { dtype = "int64" }) },
                     moved_text = { flow.tensor(files.words):reshape { -1 }, flow.tensor(files.numbers) / 2 } }
    for name, input in pairs(inputs) do
      local model = flow.load_model(folder .. "/" .. name .. ".keras")
      local y = model:predict(input, { verbose = 0 })
      local reference = files.expected[name]
      local values = y:reshape { -1 }:totable()
      for i, value in ipairs(reference.values) do assert.is_true(math.abs(value - values[i]) < 1e-5, name) end
      local path = support.folder() .. "/" .. name .. ".keras"
      model:save(path)
      assert.same(values, flow.load_model(path):predict(input, { verbose = 0 }):reshape { -1 }:totable())
    end
  end)
end)
