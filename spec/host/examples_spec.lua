-- examples_spec.lua: scripts of lua/examples that classify texts, and those with their own steps, learn. What is compared is weaker than
-- the figures in the scripts, which are of one machine.
local support = require "spec.support.init"

local examples = support.root .. "lua/examples/"

local function run(command, ...)
  local text, code = support.run("timeout -k 5 120 " .. command:format(...))
  assert.equal(0, code, text)
  return text
end

describe("lua/examples on text learn:", function()
  it("text_classification.lua", function()
    local path = support.folder() .. "/reviews.keras"
    local text = run("%q %q --epochs 6 --reviews 2000 --path %q", support.program, examples .. "text_classification.lua", path)
    local good, bad = text:match "(%d%.%d+)  The story was not dull.-(%d%.%d+)  I think the cast was tedious"
    assert.truthy(good and tonumber(good) > tonumber(bad), text)
    assert.is_true(tonumber(text:match "test accuracy (%S+)") > 0.85, text)
  end)

  it("parts_of_words.lua", function()
    local text = run("%q %q --sentences 1500 --epochs 14 --write 20", support.program, examples .. "parts_of_words.lua")
    assert.is_true(tonumber(text:match "(%d+) of 20 written sentences are right") > 4, text)
  end)
end)

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
  it("diffusion.lua", function()
    local pattern = "noise in test pictures (%S+) in the first epoch, (%S+) in the last"
    check("diffusion.lua", "--epochs 3 --steps 4", pattern, function(first, last) return last < 0.95 * first end)
  end)
  it("distillation.lua", function()
    check("distillation.lua", "--epochs 6", "teacher: test accuracy (%S+).*alone: test accuracy (%S+).*a teacher: test accuracy (%S+)",
      function(teacher, alone, student) return teacher > 0.8 and student > alone end)
  end)
end)
