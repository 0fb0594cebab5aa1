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

describe("lua/examples on text learn:", function()
  it("text_classification.lua", function()
    local path = support.folder() .. "/reviews.keras"
    local text = run("%q %q --epochs 6 --reviews 2000 --path %q", support.program, examples .. "text_classification.lua", path)
    local good, bad = text:match "(%d%.%d+)  The story was not dull.-(%d%.%d+)  I think the cast was tedious"
    assert.truthy(good and tonumber(good) > tonumber(bad), text)
    assert.is_true(tonumber(text:match "test accuracy (%S+)") > 0.85, text)
  end)
end)

-- Steps of a model's own. What is compared is weaker than the figures in the scripts, which are of one machine.
describe("lua/examples of own steps learn:", function()
  local function check(script, arguments, pattern, sound)
    local text = run("%q %q %s", support.program, examples .. script, arguments)
    local a, b, c = text:match(pattern)
    assert.truthy(a, text)
    assert.truthy(sound(tonumber(a), tonumber(b), tonumber(c)), text)
  end

  it("vae.lua", function()
    check("vae.lua", "--epochs 4", "test loss (%S+) in the first epoch, (%S+) in the last", function(first, last)
      return last < 0.9 * first
    end)
  end)
  it("gan.lua", function()
    check("gan.lua", "--epochs 5", "400 pictures: (%d+) digits, read with a confidence of (%S+)", function(digits, confidence)
      return digits >= 2 and confidence > 0.3
    end)
  end)
  it("wgan_gp.lua", function()
    check("wgan_gp.lua", "--epochs 8", "distance (%S+) at most, (%S+) in the last epoch", function(most, last) return last < most / 2 end)
  end)
  it("distillation.lua", function()
    check("distillation.lua", "--epochs 6", "teacher: test accuracy (%S+).*alone: test accuracy (%S+).*a teacher: test accuracy (%S+)",
      function(teacher, alone, student) return teacher > 0.8 and student > alone end)
  end)
end)
