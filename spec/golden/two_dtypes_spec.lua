-- two_dtypes_spec.lua: float32 and float64 variables are trained together as by Keras' optimizers (two_dtypes.py): each has slots of its
-- own dtype, in Keras' order.
local flow = require "flow"
local golden = require "spec.support.golden"

local optimizers = flow.optimizers
local cases = require "spec.golden.two_dtypes"
local DTYPES = { "float32", "float64", "float32", "float64" }
local NEAR = { float32 = 2e-6, float64 = 5e-9 }

local function flat(t) return t:reshape({ -1 }):totable() end

local function variables_of(case)
  local list = {}
  for i, entry in ipairs(case.variables) do
    list[i] = flow.Variable(golden.make(entry):to(DTYPES[i]), { name = "v" .. i })
  end
  return list
end

local function pairs_of(gradients, variables)
  local list = {}
  for i, v in ipairs(variables) do list[i] = { gradients[i], v } end
  return list
end

local function check(case, variables, optimizer)
  for i, v in ipairs(variables) do
    assert.equal(DTYPES[i], v.dtype)
    for k, x in ipairs(flat(v:value())) do
      local expected = case.trained[i][k]
      assert.near(expected, x, NEAR[v.dtype] * math.max(1, math.abs(expected)), ("variable %d, element %d"):format(i, k))
    end
  end
  local slots = {}
  for _, v in ipairs(optimizer.variables) do
    local own = v.path:match "[^/]+$"
    if #v.shape > 0 and own ~= "iteration" then slots[#slots + 1] = v.dtype .. ":" .. table.concat(v.shape, "x") end
  end
  assert.same(case.slots, slots)
end

describe("float32 and float64 variables", function()
  for i, case in ipairs(cases) do
    it(("are trained together by %s as in Keras (%d)"):format(case.optimizer, i), function()
      local eager, traced = optimizers[case.optimizer](case.options), optimizers[case.optimizer](case.options)
      local variables, others = variables_of(case), variables_of(case)
      local step = flow.fn(function(a, b, c, d) traced:apply_gradients(pairs_of({ a, b, c, d }, others)) end)
      for _, entries in ipairs(case.steps) do
        local gradients = golden.make_all(entries)
        for k, g in ipairs(gradients) do gradients[k] = g:to(DTYPES[k]) end
        eager:apply_gradients(pairs_of(gradients, variables))
        step(unpack(gradients))
      end
      check(case, variables, eager)
      check(case, others, traced)
    end)
  end

  it("have one norm under global_clipnorm", function()
    local a, b = flow.Variable(flow.zeros { 2 }), flow.Variable(flow.zeros({ 2 }, { dtype = "float64" }))
    local optimizer = optimizers.SGD(1, { global_clipnorm = 1 })
    optimizer:apply_gradients { { flow.tensor { 1, 2 }, a }, { flow.tensor({ 4, 2 }, { dtype = "float64" }), b } }      -- of norm 5
    for i, expected in ipairs { -0.2, -0.4 } do assert.near(expected, flat(a:value())[i], 1e-7) end
    for i, expected in ipairs { -0.8, -0.4 } do assert.near(expected, flat(b:value())[i], 1e-7) end
  end)

  it("are in one model, which is saved and read back", function()
    local layers = flow.layers
    local model = flow.Sequential { layers.Input { 6 }, layers.Dense(5, { dtype = "float64" }), layers.Dense(3),
      layers.Dense(2, { dtype = "float64" }) }
    model:compile { optimizer = "adam", loss = "mse" }
    local x, y = flow.ones { 4, 6 }, flow.zeros { 4, 2 }
    local first = model:train_on_batch(x, y).loss
    local path = require("spec.support.init").path ".keras"
    model:save(path)
    local read = flow.load_model(path)
    local loss = model:train_on_batch(x, y).loss
    assert.equal(loss, read:train_on_batch(x, y).loss)
    assert.is_true(loss < first)
    for k, v in ipairs(model.optimizer.variables) do
      assert.equal(v.dtype, read.optimizer.variables[k].dtype)
      assert.same(v:value():totable(), read.optimizer.variables[k]:value():totable(), v.path)
    end
  end)
end)
