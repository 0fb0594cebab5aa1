-- program_spec.lua: workers that are killed outside of training: while models are made, between two fits, in evaluate and predict, before
-- files are saved. The others go on in their process, and no bit differs. spec/dist/program.lua is the program.
local support = require "spec.support.init"


-- What all workers have in the end, all that was said, and the folder.
local function run(workers, kills)
  local folder = support.folder()
  local text, code = support.run(("FLOW_THREADS=1 FLOWLUA_PATH=%slua timeout -k 5 60 %s launch --workers %d --max-restarts 20 "
    .. "%sspec/dist/program.lua -- --folder %s --kill %q"):format(support.root, support.program, workers, support.root, folder,
    kills or ""))
  assert.equal(0, code, text)
  local digest, count = nil, 0
  for found in text:gmatch("digest (%d+ of %d+ values)") do
    assert.equal(digest or found, found, text)
    digest, count = found, count + 1
  end
  assert.equal(workers, count, text)
  return digest, text, folder
end

local wanted = {}
local function undisturbed(workers)
  if not wanted[workers] then
    local digest, text, folder = run(workers)
    wanted[workers] = { digest = digest, folder = folder, middle = text:match("middle (%S+ %S+)"),
                        predicted = text:match("predicted (%S+)") }
  end
  return wanted[workers]
end

local function predictions(folder, name)
  local script = support.file("predictions.lua", [[
    local flow = require "flow"
    local model = flow.models.load_model(arg[1])
    print(("%a"):format(model:predict(flow.random.normal({ 20, 8 }, { seed = 4 }), { verbose = 0 }):cast("float64"):sum():item()))]])
  return (support.run(("%s %s %s/%s.keras"):format(support.program, script, folder, name)))
end

describe("a worker that is killed outside of training", function()
  local PLACES = { "made", "scope", "fit", "between", "second scope", "evaluate", "test batch", "predict", "save", "second fit",
                   "third fit", "last", "end" }
  for i, place in ipairs(PLACES) do
    local rank = i % 2
    it(("comes back, nobody else ends, and no bit differs: worker:%d@%s"):format(rank, place), function()
      local known = undisturbed(2)
      local digest, text, folder = run(2, ("worker:%d@%s"):format(rank, place))
      assert.equal(known.digest, digest, text)
      assert.equal(1, select(2, text:gsub("it starts again", "")), text)
      for found in text:gmatch("middle (%S+ %S+)") do assert.equal(known.middle, found, text) end
      assert.truthy(text:find("predicted " .. known.predicted, 1, true), text)
      for _, name in ipairs { "middle", "last" } do assert.equal(predictions(known.folder, name), predictions(folder, name), text) end
    end)
  end

  it("comes back several times, of three", function()
    local digest, text = run(3, "worker:0@scope,worker:2@between,worker:1@test batch,worker:0@save,worker:2@third fit,worker:0@end")
    assert.equal(undisturbed(3).digest, digest, text)
    assert.equal(6, select(2, text:gsub("it starts again", "")), text)
  end)
end)
