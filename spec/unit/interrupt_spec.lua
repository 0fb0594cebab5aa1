-- interrupt_spec.lua: Ctrl-C during fit, as a signal to a real process: the first stops after the batch, the second ends the program.
local support = require "spec.support.init"

local program = "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " .. support.command      -- os.exit leaves memory to the system

-- A script with a model, data and press(): the signal that Ctrl-C sends, to the process itself.
local PREFIX = [[
local flow = require "flow"
local pipe = io.popen("echo $PPID")
local id = pipe:read("*n")
pipe:close()
local function press() io.popen("kill -INT " .. id):close() end
local model = flow.Sequential { flow.layers.Input { 1 }, flow.layers.Dense(1) }
model:compile { optimizer = "sgd", loss = "mse" }
local x, y = flow.ones { 20, 1 }, flow.ones { 20, 1 }
local function hooks(list) return { flow.callbacks.LambdaCallback(list) } end
]]

local function run(text)
  local output, code = support.run(program .. " " .. support.file("script.lua", PREFIX .. text))
  return output, code
end

describe("Ctrl-C", function()
  it("stops fit after the batch; History is kept and the script goes on", function()
    local output, code = run [[
      local batches, ended = 0, false
      local history = model:fit(x, y, { batch_size = 2, epochs = 5, verbose = 2, callbacks = hooks {
        on_train_batch_end = function(batch) batches = batches + 1 if batches == 13 then press() end end,
        on_train_end = function() ended = true end } })
      print(#history.epoch, #history.history.loss, batches, ended, model.stop_training)
      print(#model:fit(x, y, { verbose = 0 }).epoch)]]
    assert.equal(130, code, output)
    assert.truthy(output:find("fit: interrupted after batch 3 of the epoch; what was learnt and the History are kept\n", 1, true), output)
    assert.truthy(output:find("\nEpoch 2/5\n", 1, true), output)
    assert.falsy(output:find("Epoch 3/5", 1, true), output)
    assert.truthy(output:find("\n2\t2\t13\ttrue\ttrue\n1\n$"), output)
  end)

  it("stops validation and leaves its results out", function()
    local output, code = run [[
      local history = model:fit(x, y, { epochs = 3, verbose = 0, validation_data = { x, y }, callbacks = hooks {
        on_test_batch_end = function() press() end } })
      print(#history.epoch, history.history.val_loss)]]
    assert.equal(130, code, output)
    assert.truthy(output:find("fit: interrupted after batch 1 of the epoch", 1, true), output)
    assert.truthy(output:find("1\tnil\n$"), output)
  end)

  it("is told to the script by history.interrupted, and to its caller by the exit code, unless the script decides", function()
    local cut = [[
      local whole = model:fit(x, y, { verbose = 0 })
      local cut = model:fit(x, y, { epochs = 3, verbose = 0, callbacks = hooks { on_train_batch_end = function() press() end } })
      local again = model:fit(x, y, { verbose = 0, callbacks = { cut } })
      print(whole.interrupted, cut == again, again.interrupted, model:fit(x, y, { verbose = 0 }).interrupted)
      local after = model:fit(x, y, { verbose = 0, callbacks = hooks { on_train_batch_end = function() press() end } })
      print(after.interrupted)
      model:save(arg[0] .. ".keras")
      print "saved"
      ]]
    for ending, expected in pairs { [""] = 130, ["os.exit()"] = 130, ["os.exit(0)"] = 0, ["os.exit(7)"] = 7, ["error('x', 0)"] = 1 } do
      local output, code = run(cut .. ending)
      assert.equal(expected, code, ending .. output)
      assert.truthy(output:find("false\ttrue\tfalse\tfalse\n.*true\nsaved\n"), output)
    end
    local output, code = run [[
      for _ = 1, 2 do print(pcall(model.evaluate, model, x, y, { verbose = 0, callbacks = hooks { on_test_batch_end = press } })) end
      print "went on"]]
    assert.equal(0, code, output)      -- an error that was caught is the script's matter
    assert.truthy(output:find("went on\n$"), output)
    output, code = run [[model:evaluate(x, y, { verbose = 0, callbacks = hooks { on_test_batch_end = press } })]]
    assert.equal(130, code, output)
    output, code = run [[error("the light was interrupted", 0)]]
    assert.equal(1, code, output)
  end)

  it("ends the program when it is pressed twice, in the batch or in what follows it", function()
    local output, code = run [[
      print("begins")
      model:fit(x, y, { verbose = 0, callbacks = hooks { on_train_batch_end = function() press() press() end } })
      print("not reached")]]
    assert.equal("begins\n", output)
    assert.equal(130, code)
    output, code = run [[
      print("begins")
      model:fit(x, y, { verbose = 0, callbacks = hooks {
        on_train_batch_end = function() press() end, on_epoch_end = function() press() end } })
      print("not reached")]]
    assert.truthy(output:find("^begins\n"), output)
    assert.falsy(output:find("not reached", 1, true), output)
    assert.equal(130, code)
  end)

  it("is not forgotten when it comes after the last batch", function()
    local output, code = run [[
      model:fit(x, y, { verbose = 0, callbacks = hooks { on_train_end = function() press() end } })
      print("not reached")]]
    assert.equal("flowlua: interrupted\n", output)
    assert.equal(130, code)
  end)

  it("stops fit at the prompt, which then shows the History", function()
    local script = support.file("commands.lua", PREFIX:gsub("local (%a)", "%1"):gsub("\nfunction", "\nfunction") .. [[
function stop(batch) if batch == 1 then press() end end
h = model:fit(x, y, { batch_size = 2, epochs = 2, verbose = 0, callbacks = hooks { on_train_batch_end = stop } })
#h.epoch
press()
"still here"
]])
    local output = support.run(program .. " -i <" .. script)
    assert.truthy(output:find('fit: interrupted after batch 2', 1, true), output)
    assert.truthy(output:find('\n1\n.*still here\n$'), output)
  end)
end)
