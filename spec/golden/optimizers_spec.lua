--- Optimizers against Keras: two variables after the first and after the last of a few random gradients; schedules; configs.
local flow = require "flow"
local golden = require "spec.support.golden"
local schedules = flow.optimizers.schedules

local function optimizer_of(case)
  local options = {}
  for name, value in pairs(case.options) do options[name] = value end
  if case.schedule then options.learning_rate = schedules[case.schedule[1]](case.schedule[2]) end
  return flow.optimizers[case.optimizer](options)
end

describe("optimizers as in Keras:", function()
  it("have a case for each class of the library", function()
    local native, has, missing = require "flow.ffi", {}, {}
    for _, case in ipairs(golden.manifest.optimizers) do has[case.optimizer] = true end
    for i = 0, 1000 do
      local name = native.C.flow_optimizer_class_name(i)
      if name == nil then break end
      if not has[native.string(name)] then missing[#missing + 1] = native.string(name) end
    end
    assert.same({}, missing, "OPTIMIZERS of spec/golden/cases.py lacks them")
  end)

  for _, case in ipairs(golden.manifest.optimizers) do
    it(case.name, function()
      local optimizer = optimizer_of(case)
      local variables = {}
      for i, entry in ipairs(case.variables) do variables[i] = flow.Variable(golden.make(entry)) end
      if case.exclude then optimizer:exclude_from_weight_decay { variables[case.exclude] } end
      for step, gradients in ipairs(case.steps) do
        optimizer:apply_gradients(golden.make_all(gradients), variables)
        for i, variable in ipairs(variables) do
          if step == 1 then golden.check("optimizers", case.results[i], variable:value(), 1e-6) end
          if step == #case.steps then golden.check("optimizers", case.results[#variables + i], variable:value(), 1e-6) end
        end
      end
      assert.are.equal(case.iterations, optimizer.iterations)
    end)
  end
end)

describe("schedules as in Keras:", function()
  for i, case in ipairs(golden.manifest.schedules) do
    it(("%s %d"):format(case.schedule, i), function()
      local schedule = schedules[case.schedule](case.options)
      for step, rate in ipairs(case.rates) do
        local found = schedule(step - 1)
        assert.near(rate, found, 1e-7 * math.max(1, math.abs(rate)), ("step %d"):format(step - 1))
      end
    end)
  end
end)

-- Members of two objects in JSON, numbers as numbers: 1 and 1.0 are the same.
local function same_json(expected, found)
  local json = require "flow.json"
  assert.same(json.decode(expected), json.decode(found))
end

describe("Keras' config", function()
  for i, case in ipairs(golden.manifest.schedules) do
    it(("of schedule %s %d"):format(case.schedule, i), function()
      same_json(case.config, schedules[case.schedule](case.options):to_json())
    end)
  end

  for _, case in ipairs(golden.manifest.optimizer_configs) do
    it("of " .. case.optimizer .. ", out and in", function()
      local text = flow.optimizers[case.optimizer] { name = "mine" } :to_json()
      same_json(case.config, text)
      local again = flow.optimizers.from_json(case.config)
      assert.equal("mine", again.name)
      same_json(text, again:to_json())
    end)
  end
end)
