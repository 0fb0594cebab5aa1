--- What flow reads and writes as text does not follow the locale of the host.
local flow = require "flow"
local comma_locale = require "spec.support.comma_locale"
local model_files = require "spec.support.model_files"
local support = require "spec.support.init"

--- The results of make() without a locale and with one, both made before they are compared.
local function compare(make)
  local expected = make()
  local found, reason = comma_locale.call(make)
  if not found then return pending(reason) end
  assert.same(expected, found)
  return expected
end

describe("in a host whose numbers have a comma", function()
  it("tensors are shown as elsewhere", function()
    local text = compare(function()
      return { tostring(flow.tensor { 1.5, -2.25e-7, 3e10 }), tostring(flow.tensor { { 0.125, 1 / 3 } }) }
    end)
    assert.truthy(text[2]:find("0.125", 1, true))
  end)

  it("options with defaults, and what is wrong with them, are as elsewhere", function()
    compare(function()
      local config = flow.layers.LeakyReLU { name = "a" }:get_config()
      local elu, batch = flow.layers.ELU { name = "b" }:get_config(), flow.layers.BatchNormalization { name = "c" }:get_config()
      return { config.negative_slope, elu.alpha, batch.momentum, batch.epsilon, select(2, pcall(flow.layers.Dropout, 1.5)) ~= nil }
    end)
  end)

  it("messages are as elsewhere", function()
    local messages = compare(function()
      local found = {}
      for i, f in ipairs { function() flow.optimizers.SGD { momentum = -0.5 } end, function() flow.layers.Dropout { 1.5, name = "a" } end,
        function() flow.layers.GaussianNoise { -0.25, name = "b" } end, function() flow.tensor { 1, 2 }:reshape { 3 } end } do
        found[i] = select(2, pcall(f)):gsub("^[^\n]-:%d+: ", "")
      end
      return found
    end)
    assert.truthy(messages[1]:find("-0.5", 1, true), messages[1])
  end)

  it("tables are read as elsewhere", function()
    local path = support.file("a.csv", "a,b\n0.5,1234567890.12345678\n-1.25e-3,0.1234567890123456789\n")
    compare(function()
      local read = flow.data.load_csv(path)
      return { read.a:totable(), read.b:totable() }
    end)
  end)

  -- Formulas of operations stand in C as text with numbers.
  for _, name in ipairs { "arctan2", "logaddexp", "hypot", "sinc", "gelu", "exp2", "i0", "deg2rad" } do
    it("a file with " .. name .. " predicts and is written as elsewhere", function()
      local x = flow.tensor { { 0.5, -1.5, 3.25 }, { 1e-3, 2, -0.75 } }
      local path, copy = support.file("m.keras", ""), support.file("copy.keras", "")
      local input = flow.Input { 3 }
      local two = ({ arctan2 = true, logaddexp = true, hypot = true })[name]
      local model = flow.Model(input, two and flow[name](input, input * 0.5) or flow[name](input))
      local expected = model:predict(x, { verbose = 0 })
      local result, reason = comma_locale.call(function()
        model:save(path)
        return { model_files.predict_in_c(path, { x }, copy), flow.load_model(copy):predict(x, { verbose = 0 }) }
      end)
      if not result then return pending(reason) end
      assert.is_true(flow.allclose(expected, result[1][1], { rtol = 1e-6, atol = 1e-7 }):item(), tostring(result[1][1]))
      assert.is_true(flow.allclose(expected, result[2], { rtol = 1e-6, atol = 1e-7 }):item(), tostring(result[2]))
    end)
  end
end)
