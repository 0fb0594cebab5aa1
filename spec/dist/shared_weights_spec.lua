-- shared_weights_spec.lua: two workers of one machine have what a divided update trains in common memory. Whatever a program does to the
-- variables between steps, it ends with the weights that one process reaches, and both workers have the same bits.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"

local BEGIN = [[
  local flow = require "flow"
  local layers, optimizers = flow.layers, flow.optimizers
  local name, several = arg[1], os.getenv "TF_CONFIG" ~= nil
  local index = several and tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)')) or 0
  local strategy = several and flow.distribute.MultiWorkerMirroredStrategy() or flow.distribute.get_strategy()
  flow.set_random_seed(1)
  local x = flow.random.normal({ 44, 9, 9, 1 }, { seed = 1 })
  local y = flow.random.normal({ 44, 3 }, { seed = 2 })
  local made = {
    sgd = function() return optimizers.SGD(0.02) end,
    momentum = function() return optimizers.SGD { learning_rate = 0.01, momentum = 0.9, nesterov = true } end,
    adamw = function() return optimizers.AdamW { learning_rate = 0.002, weight_decay = 0.1 } end,
    averaged = function() return optimizers.Adam { learning_rate = 0.002, use_ema = true, ema_momentum = 0.8 } end,
    clipped = function() return optimizers.Adam { learning_rate = 0.002, global_clipnorm = 0.5 } end,
  }
  local model, other, dense
  strategy.scope(function()
    model = flow.Sequential { layers.Input { 9, 9, 1 }, layers.Conv2D(5, 3, { activation = "relu" }), layers.Flatten(),
                              layers.Dense(320, { activation = "tanh", name = "wide" }), layers.Dense(3) }
    model:compile { optimizer = made[name](), loss = "mse" }
    dense = model:get_layer "wide"
  end)
  local function mappings()      -- pieces of common memory
    collectgarbage()
    local count = 0
    for line in io.lines "/proc/self/maps" do
      if line:find("memfd:flow_shared", 1, true) then count = count + 1 end
    end
    return count
  end
  local function on_batch(act)
    return flow.callbacks.LambdaCallback { on_train_batch_end = function(batch) act(batch) end }
  end
  local function fit(act, epochs)
    local callbacks = { on_batch(act or function() end) }
    model:fit(x, y, { batch_size = 12, epochs = epochs or 3, shuffle = false, verbose = 0, callbacks = callbacks })
  end
  local function say_weights()
    local words = {}
    for i, w in ipairs(model:get_weights()) do
      local flat = w:to("float64"):reshape { -1 }
      words[#words + 1] = ("%.17g"):format((flat * flow.linspace(1, 2, flat.size, { dtype = "float64" })):sum():item())
    end
    print("=", table.concat(words, " "))
  end
]]

-- What a program does; all but `alone` are compared with one process.
local PROGRAMS = {
  plain = "fit()",
  ["reads weights in every step"] = "fit(function() assert(dense.kernel:value():sum():item() == dense.kernel:sum():item()) end)",
  ["keeps the address of a weight"] = "fit(function() assert(dense.kernel:data()[5] == dense.kernel:totable()[1][6]) end)",
  ["writes weights on all workers"] = [[
    fit(function(batch) if batch % 2 == 1 then dense.kernel:assign(dense.kernel * 0.9) end
      if batch == 2 then dense.bias:assign_add(0.1) end end)]],
  ["saves and loads in the middle"] = [[
    local path = arg[2] .. index .. ".weights.h5"
    fit(function(batch) if batch == 1 then model:save_weights(path) elseif batch == 2 then model:load_weights(path) end end)
    assert(os.remove(path))]],
  ["compiles again and lets the optimizer go"] = [[
    fit(nil, 1)
    strategy.scope(function() model:compile { optimizer = made[name](), loss = "mse" } end)
    collectgarbage() collectgarbage()
    fit(nil, 1)
    model:evaluate(x, y, { verbose = 0 })
    fit(nil, 1)]],
  ["trains a part of the layers for a while"] = [[
    fit(nil, 1)
    model.layers[1].trainable = false
    strategy.scope(function() model:compile { optimizer = made[name](), loss = "mse" } end)
    fit(nil, 1)
    model.layers[1].trainable = true
    strategy.scope(function() model:compile { optimizer = made[name](), loss = "mse" } end)
    fit(nil, 1)]],
  ["steps by itself"] = [[
    fit(nil, 1)
    local tape = flow.GradientTape()
    local loss = tape:record(function() return (model(x, { training = true }) - y):square():mean() end)
    local gradients = tape:gradient(loss, model.trainable_variables)
    if several then model.trainable_variables[1]:assign_sub(gradients[1] * 0.01)      -- on all workers alike
    else model.trainable_variables[1]:assign_sub(gradients[1] * 0.01) end
    fit(nil, 1)]],
}

local function numbers_of(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = tonumber(word) end
  return list
end

local function compare(optimizer, program)
  local script, arguments = PROGRAMS[program] .. "\nsay_weights()", optimizer .. " " .. support.path()
  local options = { begin = BEGIN, launch = "--kill-after 1 --engine ring", arguments = arguments }
  local alone = support.run(("%s %s %s"):format(support.command, support.file("alone.lua", BEGIN .. script), arguments))
  local said, output, code = clusters.launch(script, options)
  assert.equal(0, code, output)
  assert.equal(said[0][1], said[1][1], output)
  local wanted, found = numbers_of(alone:match "=\t([^\n]+)" or error(alone)), numbers_of(said[0][1])
  assert.equal(#wanted, #found)
  for i, value in ipairs(wanted) do
    local close = math.abs(value - found[i]) <= 2e-4 * (1 + math.abs(value))
    assert.is_true(close, ("%s, %s: %s beside %s"):format(optimizer, program, value, found[i]))
  end
end

describe("workers of one machine that train in common memory", function()
  for _, optimizer in ipairs { "sgd", "momentum", "adamw", "averaged", "clipped" } do
    it("end with the weights of one process: " .. optimizer, function() compare(optimizer, "plain") end)
  end
  for _, optimizer in ipairs { "sgd", "adamw" } do
    for program in pairs(PROGRAMS) do
      if program ~= "plain" then it(("end with them where the program %s: %s"):format(program, optimizer), function()
        compare(optimizer, program)
      end) end
    end
  end

  it("do so with a model from a file, whose optimizer has its state already", function()
    local said, output, code = clusters.launch([[
      fit(nil, 1)
      local path = arg[2] .. index .. ".keras"
      model:save(path)
      strategy.scope(function() model = flow.models.load_model(path) end)
      local before
      fit(function() before = mappings() end, 1)
      model:get_layer "wide".kernel:assign(flow.zeros { 245, 320 })
      print("=", before - mappings())]],
      { begin = BEGIN, launch = "--kill-after 1 --engine ring", arguments = "momentum " .. support.path() })
    assert.equal(0, code, output)
    for worker = 0, 1 do assert.is_true(tonumber(said[worker][1]) > 0, output) end
  end)

  it("have pieces of memory more, until one of them writes by itself or tells a weight's address", function()
    local said, output, code = clusters.launch([[
      local counts = {}
      fit(function(batch)
        counts[#counts + 1] = mappings()
        if #counts < 4 then dense.kernel:assign(flow.zeros { 245, 320 }) else dense.kernel:data() end
        collectgarbage()
        counts[#counts + 1] = mappings()
      end, 2)
      print("=", counts[1] - counts[2], counts[3] - counts[4], counts[5] - counts[6], counts[7] - counts[8])]],
      { begin = BEGIN, launch = "--kill-after 1 --engine ring", arguments = "sgd" })
    assert.equal(0, code, output)
    for worker = 0, 1 do
      local freed = numbers_of(said[worker][1])
      assert.is_true(freed[1] > 0 and freed[2] > 0 and freed[3] > 0 and freed[4] == 0, output)
    end
  end)
end)
