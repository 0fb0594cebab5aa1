-- half_floats_spec.lua: what a step under mixed_bfloat16 does on a device: activations and their gradients have 16 bits in memory, and no
-- op runs between casts. On an emulated GPU (spec/cuda/emulation/emulation.h).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local nets = require "spec.support.nets.golden"
local steps = require "flow.train.steps"

if emulated.missing() then
  pending("16-bit floats: " .. emulated.missing())
  return
end

local BATCH = 8

-- Entries of a training step, each { op, variant, inputs, outputs, more }; operands as describe writes them: "bfloat16{None, 10}", "{10}".
local function entries(policy, make, dtype, from_logits)
  flow.mixed_precision.set_global_policy(policy)
  finally(function() flow.mixed_precision.set_global_policy("float32") end)
  return flow.device("gpu:0", function()
    local model = make()
    model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = from_logits or false } }
    local shape = { BATCH, unpack(model.input_shape, 2) }
    local x, y = flow.zeros(shape, { dtype = dtype or "float32" }), flow.zeros({ BATCH }, { dtype = "int32" })
    local list = {}
    for line in steps.describe(steps.get(model, "train", { x, y }, { x = 1, y = 1, weights = 0 }, BATCH)):gmatch("[^\n]+") do
      local op, variant, rest = line:match("^%s*%d+ %l+%s+([%w_]+)%s+([%w_]+) (.*)$")
      if op then
        local entry = { op = op, variant = variant, inputs = {}, outputs = {}, more = 0 }
        local inputs, outputs = rest:match("^(.-) ?%-> (.*)$")
        for operand in (inputs or rest):gmatch("%w*{[^}]*}") do entry.inputs[#entry.inputs + 1] = operand end
        for operand in (outputs or ""):gmatch("%w*{[^}]*}") do entry.outputs[#entry.outputs + 1] = operand end
        entry.more = tonumber((outputs or ""):match("%((%d+) more%)") or 0)      -- of the outputs, where not all are named
        list[#list + 1] = entry
      end
    end
    return list
  end)
end

local function of(list, op)
  local found = {}
  for _, entry in ipairs(list) do if entry.op == op then found[#found + 1] = entry end end
  return found
end

-- How many float32 tensors of several numbers a sample there are among the results, but for the loss's own of one number a class.
local function wide_results(list, classes)
  local count = 0
  for _, entry in ipairs(list) do
    for _, operand in ipairs(entry.outputs) do
      local dims = operand:match("^{None, ([^}]*)}$")
      if dims and dims ~= tostring(classes) then count = count + 1 end
    end
  end
  return count
end

-- What ops `cast`, of one tensor each, give in 16 bits.
local function cast_to_half_floats(list)
  local found = {}
  for _, cast in ipairs(of(list, "cast")) do
    if cast.outputs[1]:match("^b?float16") then found[#found + 1] = cast.outputs[1] end
  end
  return found
end

local function variables(net) return #net().trainable_variables end

describe("a step in 16 bits on a GPU", function()
  it("of the MNIST net has no float32 between the image and the loss, and casts each weight once", function()
    local function make() return nets.mnist(12) end
    local list = entries("mixed_bfloat16", make, "float32", true)
    assert.equal(1, wide_results(list, 10))      -- the image with its channel, which the convolution rounds as it copies it
    assert.same({}, cast_to_half_floats(list))
    local weights = of(list, "casts")
    assert.equal(1, #weights)
    assert.equal(variables(make), #weights[1].outputs)
    assert.equal("cudnn", of(list, "convolution")[1].variant)
    assert.same({ "{None, 12, 12, 1}", "bfloat16{3, 3, 1, 32}", "bfloat16{32}" }, of(list, "convolution")[1].inputs)
    local gradient = of(list, "convolution_gradient")[1]
    assert.equal("cudnn", gradient.variant)
    assert.equal("bfloat16{None, 10, 10, 32}", gradient.inputs[1])
    assert.same({ "{3, 3, 1, 32}", "{32}" }, { gradient.outputs[2], gradient.outputs[3] })
    for _, op in ipairs { "dense", "matmul" } do
      for _, entry in ipairs(of(list, op)) do
        assert.equal("cublaslt", entry.variant)
        for _, operand in ipairs(entry.inputs) do assert.matches("^bfloat16", operand) end
      end
    end
  end)

  it("of the flowers net takes bytes from the file and pools in 16 bits", function()
    local function make() return nets.flowers(16) end
    local list = entries("mixed_bfloat16", make, "uint8")
    assert.equal(0, wide_results(list, 5))
    assert.equal("uint8{None, 16, 16, 3}", of(list, "convolution")[1].inputs[1])
    assert.same({ "bfloat16{None, 8, 8, 16}", "uint8{None, 8, 8, 16}" }, of(list, "convolution")[1].outputs)
    assert.same({}, cast_to_half_floats(list))
    local turned = of(list, "transpose_filters")          -- the kernels of the second and third convolution; then their gradients
    assert.equal(2, #turned)
    assert.same({ "bfloat16{32, 3, 3, 16}", "bfloat16{64, 3, 3, 32}" }, turned[1].outputs)
    assert.same({ "{3, 3, 16, 32}", "{3, 3, 32, 64}" }, turned[2].outputs)
    assert.equal(1, #of(list, "casts"))
    assert.equal(variables(make), #of(list, "casts")[1].outputs + of(list, "casts")[1].more + #turned[1].outputs)
    assert.equal(0, #of(list, "max_pool"))
  end)

  it("normalizes what has 16 bits by statistics of 32", function()
    local list = entries("mixed_bfloat16", function() return nets.residual(8) end)
    for _, entry in ipairs(of(list, "batch_norm")) do
      assert.same({ "bfloat16{None, 8, 8, 8}", "{8}", "{8}" }, entry.inputs)
      assert.same({ "bfloat16{None, 8, 8, 8}", "{8}", "{8}" }, entry.outputs)
    end
    assert.equal(1, #of(list, "batch_norm"))         -- the other one takes the relu after it over
    assert.equal(1, #of(list, "batch_norm_relu"))
    for _, entry in ipairs(of(list, "batch_norm_gradient")) do
      assert.matches("^bfloat16", entry.inputs[1])
      assert.same({ "bfloat16{None, 8, 8, 8}", "{8}", "{8}" }, entry.outputs)
    end
    for _, entry in ipairs(list) do                  -- what is float32 is small: means over pixels, and the loss's own
      for _, operand in ipairs(entry.outputs) do assert.is_nil(operand:match("^{None, [2-9]%d*, ")) end
    end
  end)

  it("casts nothing in float32", function()
    local list = entries("float32", function() return nets.mnist(12) end)
    assert.same({}, cast_to_half_floats(list))
    assert.same({}, of(list, "casts"))
  end)
end)

describe("weights in 16 bits on a GPU", function()
  -- An optimizer's parameters have no gaps between them: after a bias of 3 numbers none is at a multiple of 16 bytes.
  it("are those of float32, rounded, wherever these begin", function()
    flow.mixed_precision.set_global_policy("mixed_bfloat16")
    finally(function() flow.mixed_precision.set_global_policy("float32") end)
    local function train(device)
      return flow.device(device, function()
        flow.random.set_seed(5)
        local model = flow.Sequential {
          flow.layers.Input { 9 }, flow.layers.Dense(3, { activation = "relu" }), flow.layers.Dense(11), flow.layers.Dense(7),
        }
        model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
        local x = flow.random.normal({ BATCH, 9 }, { seed = 1 })
        local y = flow.random.uniform({ BATCH }, { maxval = 7, dtype = "int32", seed = 2 })
        for _ = 1, 4 do model:train_on_batch(x, y) end
        return model:predict(x, { verbose = 0 }):to("cpu"):to("float32"):flatten():totable()
      end)
    end
    local cpu, gpu = train("cpu"), train("gpu:0")
    for i = 1, #cpu do assert.near(cpu[i], gpu[i], 0.02 * math.max(1, math.abs(cpu[i]))) end
  end)
end)

-- Ops that the CPU computes between casts: the same numbers, but for the one rounding that both do.
describe("an op on 16-bit floats on a GPU", function()
  local a = flow.random.normal({ 3, 37 }, { seed = 1 })
  local b = flow.random.normal({ 3, 37 }, { seed = 2 })
  local function both(dtype, f)
    local function run(device)
      return flow.device(device, function() return f(a:to(dtype), b:to(dtype)):to("cpu"):to("float32"):totable() end)
    end
    return run("cpu"), run("gpu:0")
  end

  for _, dtype in ipairs { "bfloat16", "float16" } do
    it("gives what the CPU gives: " .. dtype, function()
      local tolerance = dtype == "bfloat16" and 2 ^ -7 or 2 ^ -10
      local cases = {
        add = function(x, y) return x + y end,
        chain = flow.fn(function(x, y) return flow.relu((x * y + x) - 0.25):tanh() end),
        there_and_back = flow.fn(function(x, y) return ((x * y):to("float32") * 3):to(dtype) end),
        sum = function(x) return x:sum { axis = 2 } end,
        matmul = function(x, y) return x:matmul(y:transpose()) end,
        softmax = function(x) return flow.softmax(x) end,
        max = function(x, y) return flow.maximum(x, y):max { axis = 1 } end,
        transposed = function(x, y) return x:transpose() * y:transpose() end,
      }
      for name, f in pairs(cases) do
        local cpu, gpu = both(dtype, f)
        local function compare(e, g)
          if type(e) == "table" then
            assert.equal(#e, #g)
            for i = 1, #e do compare(e[i], g[i]) end
          else
            assert.near(e, g, tolerance * math.max(1, math.abs(e)), name)
          end
        end
        compare(cpu, gpu)
      end
    end)
  end

  it("rounds in a chain where its ops round", function()
    local x = flow.tensor({ 1.00390625 }, { device = "gpu:0" })      -- between two numbers of bfloat16
    local f = flow.fn(function(t) return t:to("bfloat16"):to("float32") * 256 end)
    assert.equal(256, f(x):item())
  end)
end)

describe("a program on 16-bit tensors", function()
  it("keeps gradients right where an op mixes dtypes", function()
    local w = flow.Variable(flow.random.normal({ 5, 4 }, { seed = 3 }))
    local x = flow.random.normal({ 6, 5 }, { seed = 4 })
    local function gradient(device)
      local f = flow.fn(function(input)
        local tape = flow.GradientTape()
        local target = tape:record(function()
          local y = input:to("bfloat16"):matmul(w:value():to("bfloat16"))
          return (flow.relu(y):to("float32") * 2):sum()
        end)
        return tape:gradient(target, w)
      end)
      return flow.device(device, function() return f(x):to("cpu"):flatten():totable() end)
    end
    local cpu, gpu = gradient("cpu"), gradient("gpu:0")
    for i = 1, #cpu do assert.near(cpu[i], gpu[i], 0.02 * math.max(1, math.abs(cpu[i]))) end
  end)
end)
