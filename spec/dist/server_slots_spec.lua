-- server_slots_spec.lua: optimizers that run on parameter servers: their slots and counts are in checkpoints and models, and come back from
-- there. The script is server_slots.lua; one worker ends as a process that is alone, to the last bit.
local support = require "spec.support.init"

local SCRIPT = support.root .. "spec/dist/server_slots.lua"
local BEGIN = ("cd '%s'; FLOW_THREADS=1 FLOWLUA_PATH='%slua' timeout -k 5 100 %s "):format(support.root, support.root, support.program)

local function alone(optimizer)
  local text, code = support.run(BEGIN .. ("%s --alone --optimizer %s --folder %s"):format(SCRIPT, optimizer, support.folder()))
  assert.equal(0, code, text)
  return text
end

local function launch(optimizer, folder, more)
  return support.run(BEGIN .. ("launch --workers 1 --parameter-servers 2 %s -- --optimizer %s --folder %s %s"):format(SCRIPT, optimizer,
    folder, more or ""))
end

local function said(text, word)
  for line in text:gmatch "[^\n]+" do
    local found = line:gsub("^%[worker:0%] ", ""):match("^" .. word .. " (.*)$")
    if found then return found end
  end
  error(("nothing says %q in:\n%s"):format(word, text))
end

local function check_same(wanted, text)
  for _, word in ipairs { "optimizer", "weights", "file" } do assert.equal(said(wanted, word), said(text, word), text) end
  assert.equal(said(text, "optimizer"), said(text, "file"), text)
end

describe("optimizers on parameter servers", function()
  for _, optimizer in ipairs { "scheduled", "nadam", "sgd", "nesterov", "adamw", "accumulating" } do
    it("save their slots, and a job that is started again goes on with them: " .. optimizer, function()
      local wanted, folder = alone(optimizer), support.folder()
      local text, code = launch(optimizer, support.folder())
      assert.equal(0, code, text)
      check_same(wanted, text)
      text, code = launch(optimizer, folder, "--stop 1")
      assert.is_true(code ~= 0, text)
      text, code = launch(optimizer, folder)
      assert.equal(0, code, text)
      assert.truthy(text:find("training continues in epoch 2 after batch 0", 1, true), text)
      check_same(wanted, text)
    end)
  end

  it("do not add up gradients that workers have clipped", function()
    local text = launch("clipped", support.folder())
    assert.truthy(text:find("clipnorm with gradient_accumulation_steps is not supported by parameter servers", 1, true), text)
  end)
end)
