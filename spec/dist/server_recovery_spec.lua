-- server_recovery_spec.lua: trainings with parameter servers that lose a server, the chief or a worker, or whose worker freezes, go on
-- and learn. The script is server_recovery.lua.
local support = require "spec.support.init"

local SCRIPT = support.root .. "spec/dist/server_recovery.lua"
local BEGIN = ("cd '%s'; export FLOW_THREADS=1 FLOWLUA_PATH='%slua'; "):format(support.root, support.root)
local LAUNCH = ("timeout -k 5 140 '%s' launch --kill-after 2 --max-restarts %%d %%s '%s' -- --folder %%s %%s"):format(support.program,
  SCRIPT)

local function launch(arguments)
  local folder = support.folder()
  local text, code = support.run(BEGIN .. LAUNCH:format(4, "--chief --workers 2 --parameter-servers 2", folder, arguments))
  assert.equal(0, code, text)
  assert.truthy(support.exists(folder .. "/struck"), text)
  return text
end

-- All that train have learnt, in at least as many steps as the data has batches.
local function check_learnt(text, count, batches)
  local found = 0
  for accuracy in text:gmatch "%] accuracy (%S+)" do
    found = found + 1
    assert.is_true(tonumber(accuracy) > 0.9, text)      -- what is asynchronous ends between 0.92 and 0.96
  end
  assert.equal(count, found, text)
  for iterations in text:gmatch "%] iterations (%d+)" do assert.is_true(tonumber(iterations) >= batches, text) end
end

describe("a training with parameter servers goes on", function()
  for index = 0, 1 do
    it(("when ps:%d is killed within an epoch, and gets what the chief knows"):format(index), function()
      local text = launch("--within --victim ps:" .. index)
      assert.truthy(text:find(("ps:%d was killed by SIGKILL; it starts again"):format(index), 1, true), text)
      assert.truthy(text:find("[chief:0] ParameterServerStrategy: all parameter servers are there", 1, true), text)
      assert.equal(index == 0, text:find("epoch %d begins again") ~= nil, text)
      check_learnt(text, 3, 282)
    end)
  end

  it("when a server is killed between two epochs", function() check_learnt(launch("--victim ps:0"), 3, 282) end)

  it("when the chief is killed, from its backup", function()
    local text = launch("--victim chief:0 --backup")
    assert.truthy(text:find("training continues in epoch 3 after batch 0", 1, true), text)
    check_learnt(text, 3, 282)
  end)

  it("when the chief is killed in its second fit: the first one is left out", function()
    local text = launch("--victim chief:0 --twice")
    assert.truthy(text:find("fit: it was over before this process was started again", 1, true), text)
    check_learnt(text, 3, 282 + 47)
  end)

  it("when a worker stands still: others get its batch", function()
    local text = launch("--within --victim worker:0 --signal STOP --reassign 1")
    assert.truthy(text:find("worker:0 has not answered for 1 s; its work goes to other workers", 1, true), text)
    check_learnt(text, 3, 282)
  end)

  it("while workers are killed at random, and all roles end", function()
    local folder = support.folder()
    local path = support.file("kills.sh", BEGIN .. (LAUNCH:format(40, "--chief --workers 3 --parameter-servers 2 --evaluator", folder,
      "--epochs 40 --checkpoints")) .. ([[ & job=$!
      killed=0
      for i in $(seq 400); do
        kill -0 $job 2>/dev/null || break
        [ -f %s/chief:0 ] && ! kill -0 $(cat %s/chief:0) 2>/dev/null && break
        sleep 0.25
        [ $killed -lt 8 ] && [ -d %s/checkpoints ] && kill -9 $(cat %s/worker:$((RANDOM %% 3))) 2>/dev/null && killed=$((killed + 1))
      done
      wait $job
      echo "code $? killed $killed"
      for file in %s/*:*; do [ -d /proc/$(cat $file) ] && echo "left $file"; done; true]]):gsub("%%s", folder):gsub("%%%%", "%%"))
    local text = support.run("bash " .. path)
    local code, killed = text:match "code (%d+) killed (%d+)"
    assert.equal("0", code, text)
    assert.is_true(tonumber(killed) >= 3, text)
    assert.is_nil(text:find("left ", 1, true), text)
    assert.truthy(tonumber(text:match "%[chief:0%] accuracy (%S+)") > 0.95, text)
    assert.truthy(text:find("[evaluator:0] evaluations 40", 1, true), text)
    assert.equal(2, support.count(text, "the chief has ended, and so does ps:"), text)
  end)
end)
