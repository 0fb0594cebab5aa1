-- random_files_spec.lua: random models go into files and come back: every layer with random options, alone, shared and nested, read by Lua
-- and by C; compiled models go on training to the same bits. FLOW_CASES=10000 tries more of them than scripts/test does.
local flow = require "flow"
local json = require "flow.json"
local model_files = require "spec.support.model_files"
local random_files = require "spec.support.random_files"
local support = require "spec.support.init"

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(random_files.classes)

--- f(seed) for all seeds of a kind; the first failures are told with their seeds when all were tried.
local function each(f)
  local failures, count = {}, 0
  for seed = FIRST, LAST do
    local ok, problem = pcall(f, seed)
    if not ok then
      count = count + 1
      failures[math.min(count, 20)] = ("seed %d: %s"):format(seed, tostring(problem))
    end
    if seed % 50 == 0 then collectgarbage() end
  end
  if count > 0 then error(("%d of %d fail:\n%s"):format(count, CASES, table.concat(failures, "\n")), 0) end
end

describe("models with random options", function()
  for _, policies in ipairs { false, true } do
    it("come back from files" .. (policies and " in other dtypes" or ""), function()
      each(function(seed)
        local model, inputs, _, in_c = random_files.model(seed, { policies = policies })
        model_files.assert_returns(model, inputs, { in_c = in_c })
      end)
    end)
  end

  it("give every layer's config back: get_config, from_config, get_config", function()
    each(function(seed)
      local model = random_files.model(seed)
      local again = flow.models.clone_model(model)
      model_files.assert_same_text(model:to_json(), again:to_json(), "the description")
      for i, layer in ipairs(model.layers) do assert.same(json.encode(layer:get_config()), json.encode(again.layers[i]:get_config())) end
    end)
  end)

  it("give their weights back from .weights.h5 and .safetensors", function()
    local folder = support.file("x", ""):gsub("x$", "")
    each(function(seed)
      local model = random_files.model(seed)
      for _, name in ipairs { "w.weights.h5", #model.weights > 0 and "w.safetensors" or nil } do
        model:save_weights(folder .. name)
        local again = flow.models.clone_model(model)
        again:load_weights(folder .. name)
        local expected, found = {}, {}
        for i, v in ipairs(model.variables) do
          expected[i], found[i] = v:value(), again.variables[i]:value()
        end
        model_files.assert_same_bits(expected, found, name)
      end
    end)
  end)
end)

describe("models of operations on symbolic tensors", function()
  it("come back from files, read by Lua and by C", function()
    each(function(seed)
      local model, inputs = random_files.operations(seed)
      model_files.assert_returns(model, inputs)
    end)
  end)
end)

describe("compiled models with random options", function()
  it("come back from files and go on training to the same bits", function()
    local path = support.file("trained.keras", "")
    each(function(seed)
      local model, x, y = random_files.trained(seed)
      model:save(path)
      local again = flow.load_model(path)
      model_files.assert_same_text(model:to_json(), again:to_json(), "the description")
      local function state_of(m)
        local list = {}
        for _, v in ipairs(m.variables) do list[#list + 1] = v:value() end
        for _, v in ipairs(m.optimizer.variables) do list[#list + 1] = v:value() end
        return list
      end
      for step = 1, 2 do
        local expected, found = model:train_on_batch(x, y), again:train_on_batch(x, y)
        assert.equal(expected.loss, found.loss, "the loss of step " .. step)
      end
      model_files.assert_same_bits(state_of(model), state_of(again), "the state after two steps")
      model_files.assert_same_bits({ model:predict(x, { verbose = 0 }) }, { again:predict(x, { verbose = 0 }) }, "predictions")
      model:save(path)
      model_files.assert_same_bits({ model:predict(x, { verbose = 0 }) }, model_files.predict_in_c(path, { x }), "C")
    end)
  end)
end)
