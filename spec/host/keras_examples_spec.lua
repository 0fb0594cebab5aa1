-- keras_examples_spec.lua: the scripts of lua/examples that follow Keras' code examples run with small settings, and learn. What is
-- compared is weaker than the figures in their headers, which are of one machine.
local support = require "spec.support.init"

local examples = support.root .. "lua/examples/"

-- Runs a script in its own folder and returns what the pattern finds in its output, as numbers.
local function run(script, arguments, pattern)
  local command = ("cd %q && timeout -k 5 120 %q %q %s"):format(support.folder(), support.program, examples .. script, arguments)
  local text, code = support.run(command)
  assert.equal(0, code, text)
  local found = { text:match(pattern) }
  assert.truthy(found[1], text)
  for i, number in ipairs(found) do found[i] = tonumber(number) end
  return unpack(found)
end

describe("lua/examples after Keras' examples learn:", function()
  it("char_lstm.lua", function()
    local words, count = run("char_lstm.lua", "--sentences 400 --epochs 8 --letters 80", "diversity 0.2: (%d+) of (%d+) are words")
    assert.truthy(words > count / 2)
  end)

  it("mini_gpt.lua", function()
    assert.truthy(run("mini_gpt.lua", "--sentences 1500 --epochs 5 --write 20", "(%d+) of 20 written sentences are right") > 8)
  end)

  it("masked_words.lua", function()
    local accuracy, without = run("masked_words.lua", "--sentences 600 --epochs 8", "sentences: (%S+), without what it learnt before (%S+)")
    assert.truthy(accuracy > without + 0.2)
  end)

  it("speech.lua", function()
    local arguments = "--words 120 --epochs 15"
    assert.truthy(run("speech.lua", arguments, "(%d+) of 100 words are written right") > 2)
  end)

  it("translation.lua", function()
    assert.truthy(run("translation.lua", "--sentences 1500 --epochs 10 --translate 20", "(%d+) of 20 sentences are translated right") > 4)
  end)

  it("unet.lua", function()
    local accuracy = run("unet.lua", "--pictures 80 --size 24 --epochs 8", "accuracy of pixels (%S+),")
    assert.truthy(accuracy > 0.3)
  end)

  it("transfer.lua", function()
    local arguments = "--pretrain-epochs 1 --epochs 2 --fine-epochs 1 --labelled 40"
    local frozen, tuned = run("transfer.lua", arguments, "frozen base: test accuracy (%S+).*fine%-tuned: test accuracy (%S+)")
    assert.truthy(frozen > 0.1 and tuned > 0.1)
  end)

  it("forecasting.lua", function()
    local off, without = run("forecasting.lua", "--hours 4000 --epochs 4", "off by (%S+) degrees, (%S+) without a model")
    assert.truthy(off < without)
  end)

  it("siamese.lua", function() assert.truthy(run("siamese.lua", "--epochs 2", "test accuracy (%S+)") > 0.7) end)

  it("captcha.lua", function()
    assert.truthy(run("captcha.lua", "--rows 1500 --epochs 6", "rows read without a mistake: (%S+)") > 0.1)
  end)

  it("citations.lua", function() assert.truthy(run("citations.lua", "--papers 300 --epochs 30", "test accuracy: (%S+)") > 0.5) end)

  it("dqn.lua", function()
    local before, after = run("dqn.lua", "--episodes 400", "mean reward of 100 games: (%S+) before, (%S+) after")
    assert.truthy(after > before)
  end)

  it("style.lua", function()
    local first, last = run("style.lua", "--iterations 6 --size 32", "loss (%S+) in the first iteration, (%S+) in the last")
    assert.truthy(last < first)
  end)

  it("dcgan.lua", function()
    local off, before = run("dcgan.lua", "--faces 200 --batch-size 8 --epochs 8", "deviation by (%S+); %S+ and (%S+) before")
    assert.truthy(off < before)
  end)

  it("structured_data.lua", function() assert.truthy(run("structured_data.lua", "", "validation accuracy (%S+)") > 0.8) end)

  it("audio_words.lua", function()
    assert.truthy(run("audio_words.lua", "--words 300 --epochs 6", "validation accuracy (%S+)") > 0.5)
  end)
end)
