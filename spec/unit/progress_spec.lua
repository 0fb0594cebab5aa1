-- progress_spec.lua: what fit draws on a terminal of a given width (a pseudo-terminal by script(1)), and what it prints elsewhere.
local support = require "spec.support.init"

local program = support.command
local has_script = os.execute("command -v script >/dev/null 2>&1") == 0

local SCRIPT = [[
local flow = require "flow"
local model = flow.Sequential { flow.layers.Input { 1 }, flow.layers.Dense(1) }
model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" } }
local x, y = flow.ones { 40, 1 }, flow.ones { 40, 1 }
local slow = flow.callbacks.LambdaCallback { on_train_batch_end = function() io.popen("sleep 0.03"):close() end }
model:fit(x, y, { batch_size = 4, epochs = 2, validation_data = { x, y }, callbacks = { slow } })
]]

-- What the program writes to a terminal with this many columns.
local function on_terminal(columns, environment)
  local command = ("stty cols %d; %s env %s %s"):format(columns, environment or "", program, support.file("script.lua", SCRIPT))
  return (support.run(("script -qec %q /dev/null </dev/null"):format(command)))
end

local function width(text)
  return select(2, text:gsub("\27%[[%d;]*%a", ""):gsub("[^\128-\191]", ""))
end

-- The texts that stood in a line one after the other.
local function drawn(output)
  local list = {}
  for text in output:gsub("\r\n", "\r"):gmatch("[^\r]+") do list[#list + 1] = text end
  return list
end

describe("Progress", function()
  local function on_each(columns, f)
    if not has_script then return pending("script(1) is not installed") end
    f(on_terminal(columns))
  end

  it("is a bar with the time left, the rate and all values where there is room", function()
    on_each(160, function(output)
      local live, final = false, false
      for _, text in ipairs(drawn(output)) do
        assert.is_true(width(text) < 160, text)
        live = live or
          text:find("^\27%[K\27%[1m ?%d+/10\27%[0m \27%[32m━.* \27%[1m%d+s\27%[0m %d+ms/step %- %d+/s %- loss: %S+ %- mae: %S+$")
        final = final or text:find("10/10.*/s %- loss: %S+ %- mae: %S+ %- val_loss: %S+ %- val_mae: %S+$")
      end
      assert.truthy(live, output)
      assert.truthy(final, output)
      assert.truthy(output:find("^Epoch 1/2\r\n"))
      assert.truthy(output:find("\r\nEpoch 2/2\r\n"))
    end)
  end)

  it("never wraps: it gets shorter, and at the end of the epoch goes on in its own lines", function()
    for _, columns in ipairs { 80, 40, 24 } do
      on_each(columns, function(output)
        for _, text in ipairs(drawn(output)) do assert.is_true(width(text) < columns, columns .. ": " .. text) end
        for _, name in ipairs { "loss", "mae", "val_loss", "val_mae" } do
          local _, count = output:gsub("[ \n]" .. name .. ": [%d.e+-]+", "")
          assert.is_true(count >= 2, columns .. ": " .. name .. " is missing:\n" .. output)
        end
      end)
    end
  end)

  it("is drawn in ASCII where the terminal has no UTF-8", function()
    if not has_script then return pending("script(1) is not installed") end
    local output = on_terminal(80, "LC_ALL=C")
    assert.truthy(output:find("=====", 1, true), output)
    assert.falsy(output:find("━", 1, true))
    assert.truthy(on_terminal(80, "LC_ALL=C.UTF-8"):find("━━", 1, true))
  end)

  it("is plain lines in a file", function()
    local output = support.run(program .. " " .. support.file("script.lua", SCRIPT))
    assert.falsy(output:find("[\27\r]"), output)
    local line = "\n10/10 %- %d+s %- %d+ms/step %- loss: %S+ %- mae: %S+ %- val_loss: %S+ %- val_mae: %S+\n"
    assert.truthy(output:find("^Epoch 1/2" .. line), output)
  end)

  it("tells how far a buffer is that takes long to fill", function()
    local output = support.run(program .. " " .. support.file("script.lua", [[
      local flow = require "flow"
      local data = flow.data.Dataset.from_generator(function()
        local i = 0
        return function()
          i = i + 1
          if i > 12 then return end
          io.popen("sleep 0.25"):close()
          return i
        end
      end, { output_signature = { shape = {}, dtype = "int64" } })
      for _ in data:shuffle(500):iter() do end]]))
    local told = 0      -- once in a while: how often depends on the machine
    for line in output:gmatch "[^\n]+" do
      assert.truthy(line:find "^filling up shuffle buffer %(this may take a while%): %d+ of 500$", line)
      told = told + 1
    end
    assert.is_true(told >= 1)
  end)
end)
