-- examples_spec.lua: the examples of distributed training learn, alone, on logical devices and as several processes.
local support = require "spec.support.init"

local examples = support.root .. "lua/examples/"

local WITHOUT = { mpi = support.missing_engine("MPI", true) }

local function run(command, ...)
  local text, code = support.run("timeout -k 5 120 " .. command:format(...))
  assert.equal(0, code, text)
  return text
end

local function launch(engine, script, arguments)
  return run("%q launch --workers 2 --threads 1 --engine %s %q -- %s", support.program, engine, examples .. script, arguments)
end

-- What is left in a folder, in one line.
local function content(folder) return (support.run(("cd %q && find . -type f | sort | tr '\\n' ' '"):format(folder))) end

describe("lua/examples/custom_loop.lua", function()
  local function check(text)
    assert.equal(5, select(2, text:gsub("epoch %d: loss", "")), text)
    local accuracy, rows = text:match("epoch 5: loss %S+, test accuracy (%S+) of (%d+)")
    assert.truthy(tonumber(accuracy) > 0.75, text)
    assert.equal("297", rows)
  end

  it("learns alone and on two devices", function()
    check(run("%q %q", support.program, examples .. "custom_loop.lua"))
    check(run("%q %q --devices 2", support.program, examples .. "custom_loop.lua"))
  end)

  for _, engine in ipairs { "ring", "mpi" } do
    it("learns as two processes, " .. engine, function()
      if WITHOUT[engine] then return pending(WITHOUT[engine]) end
      check(launch(engine, "custom_loop.lua", ""))
    end)
  end
end)

describe("lua/examples/multi_worker.lua", function()
  local function check(text, folder, workers)
    local count = 0
    for accuracy in text:gmatch("%d of " .. workers .. " workers: test accuracy (%S+)") do
      count = count + 1
      assert.truthy(tonumber(accuracy) > 0.8, text)
    end
    assert.equal(workers, count, text)
    assert.equal("./marker ./mnist.keras ", content(folder))
  end

  it("learns alone", function()
    local folder = support.file("marker", ""):match("^(.*)/")
    check(run("%q %q --epochs 2 --job-dir %s", support.program, examples .. "multi_worker.lua", folder), folder, 1)
  end)

  for _, engine in ipairs { "ring", "mpi" } do
    it("learns as two processes and saves once, " .. engine, function()
      if WITHOUT[engine] then return pending(WITHOUT[engine]) end
      local folder = support.file("marker", ""):match("^(.*)/")
      check(launch(engine, "multi_worker.lua", "--epochs 2 --job-dir " .. folder), folder, 2)
    end)
  end
end)
