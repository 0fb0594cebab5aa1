-- parameter_server_spec.lua: ParameterServerStrategy: asynchronous training with parameter servers, in processes of this machine. The
-- script that they run is parameter_server.lua.
local support = require "spec.support.init"

local SCRIPT = support.root .. "spec/dist/parameter_server.lua"
local BEGIN = ("cd '%s'; FLOW_THREADS=1 FLOWLUA_PATH='%slua' timeout -k 5 100 %s "):format(support.root, support.root, support.program)

local function alone(arguments)
  local text, code = support.run(BEGIN .. SCRIPT .. " --alone " .. arguments)
  assert.equal(0, code, text)
  return text
end

local function launch(options, arguments, wanted)
  local text, code = support.run(BEGIN .. ("launch %s %s -- %s"):format(options, SCRIPT, arguments or ""))
  assert.equal(wanted or 0, code, text)
  return text
end

-- What a task says after a word: numbers as text.
local function said(text, task, word)
  for line in text:gmatch "[^\n]+" do
    local found = line:match("^" .. (task and "%[" .. task .. "%] " or "") .. word .. " (.*)$")
    if found then return found end
  end
  error(("%s does not say %q in:\n%s"):format(task or "it", word, text))
end

describe("parameter servers", function()
  for _, case in ipairs {
    { "--optimizer sgd", 1 }, { "--optimizer adam", 2 }, { "--optimizer adam --parts 3", 2 }, { "--optimizer lion", 1 },
    { "--optimizer sgd --dataset", 1 }, { "--optimizer sgd --dataset --steps 20", 1 }, { "--optimizer adam --staleness 0", 2 },
  } do
    it(("one worker ends with the bits of a lone run: %s, %d servers"):format(unpack(case)), function()
      local wanted = alone((case[1]:gsub("%-%-parts %d", ""):gsub("%-%-staleness %d", "")))
      local text = launch(("--workers 1 --parameter-servers %d"):format(case[2]), case[1])
      for _, word in ipairs { "sum", "accuracy", "iterations" } do
        assert.equal(said(wanted, nil, word), said(text, "worker:0", word), text)
      end
      local losses = said(text, "worker:0", "loss"):gmatch "%S+"
      for loss in said(wanted, nil, "loss"):gmatch "%S+" do assert.near(tonumber(loss), tonumber(losses()), 1e-9) end
    end)
  end

  it("moving statistics are added up on the servers: one worker ends as a lone run, to rounding", function()
    local arguments = "--optimizer sgd --norm"
    local wanted, text = alone(arguments), launch("--workers 1 --parameter-servers 1", arguments)
    assert.near(tonumber(said(wanted, nil, "sum")), tonumber(said(text, "worker:0", "sum")), 1e-2)
    assert.equal(said(wanted, nil, "accuracy"), said(text, "worker:0", "accuracy"))
  end)

  it("two workers train the digits, and all have the chief's history and the same weights", function()
    local text = launch("--workers 2 --parameter-servers 2", "--optimizer adam --epochs 8")
    assert.is_true(tonumber(said(text, "worker:0", "accuracy")) > 0.95, text)
    for _, word in ipairs { "sum", "loss", "iterations" } do
      assert.equal(said(text, "worker:0", word), said(text, "worker:1", word), text)
    end
    assert.equal("376", said(text, "worker:0", "iterations"))      -- 8 epochs of 47 batches: each batch once
  end)
end)
