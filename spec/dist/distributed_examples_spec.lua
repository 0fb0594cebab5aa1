-- distributed_examples_spec.lua: the scripts of lua/examples/distributed run alone and as a cluster on this machine, and learn.
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local examples = support.root .. "lua/examples/distributed/"
local BEGIN = ("export FLOW_THREADS=1 FLOWLUA_PATH='%slua'; timeout -k 5 150 '%s' "):format(support.root, support.program)

-- What a script says after a command such as "launch --workers 2", with its own job folder; and what is in the folder then.
local function run(command, script, arguments)
  local folder = support.folder()
  local text, code = support.run(("%s %s '%s%s' -- --job-dir %s %s"):format(BEGIN, command, examples, script, folder, arguments or ""))
  assert.equal(0, code, text)
  return text, support.run(("cd %s && ls | tr '\\n' ' '"):format(folder))
end

local function alone(script, arguments)
  local folder = support.folder()
  local text, code = support.run(("%s '%s%s' --job-dir %s %s"):format(BEGIN, examples, script, folder, arguments or ""))
  assert.equal(0, code, text)
  return text, support.run(("cd %s && ls | tr '\\n' ' '"):format(folder))
end

-- Each of `count` processes has said a line of the pattern, and what it captures is sound.
local function check(count, text, pattern, sound)
  local found = 0
  for a, b in text:gmatch(pattern) do
    found = found + 1
    assert.truthy(sound(tonumber(a), tonumber(b)), text)
  end
  assert.equal(count, found, text)
end

describe("image_classification.lua", function()
  local function learns(count, replicas, text, files)
    check(count, text, ": " .. replicas .. " replicas, loss (%S+) in the first epoch, (%S+) in the last", function(first, last)
      return last < 0.8 * first
    end)
    assert.equal("flowers.keras ", files)
  end
  it("learns alone", function() learns(1, 1, alone("image_classification.lua")) end)
  it("learns on two devices", function() learns(1, 2, alone("image_classification.lua", "--devices 2")) end)
  it("learns as two workers, which leave one model", function()
    learns(2, 2, run("launch --workers 2", "image_classification.lua"))
  end)
end)

describe("by_hand.lua", function()
  local function learns(count, text, files)
    check(count, text, "worker %d of " .. count .. ": loss %S+, the saved model's accuracy (%S+)", function(accuracy)
      return accuracy > 0.8
    end)
    assert.equal("ckpt keras-model.keras ", files)
  end
  it("learns alone", function() learns(1, alone("by_hand.lua")) end)
  it("learns as two workers", function() learns(2, run("launch --workers 2", "by_hand.lua")) end)

  it("learns in two shells with TF_CONFIG by hand; a worker that is killed is started again, and the other one has waited", function()
    local folder = support.folder()
    local path = support.file("shells.sh", ([[
      export FLOW_THREADS=1 FLOWLUA_PATH='%slua' FLOW_SECRET=0123456789abcdef FLOW_MAX_RESTARTS=3
      port=%d
      shell() {
        cluster="{\"worker\": [\"localhost:$port\", \"localhost:$((port + 1))\"]}"
        export TF_CONFIG="{\"cluster\": $cluster, \"task\": {\"type\": \"worker\", \"index\": $1}}"
        exec timeout -k 5 100 '%s' '%sby_hand.lua' --job-dir %s
      }
      (shell 1) > %s/second 2>&1 & second=$!
      (shell 0) > %s/first 2>&1 & first=$!
      for i in $(seq 600); do [ -d %s/backup ] && break; sleep 0.05; done
      pkill -KILL -P $second 2>/dev/null
      wait $second 2>/dev/null
      (shell 1) > %s/second 2>&1 & second=$!
      wait $first $second
      mkdir %s/shells
      mv %s/first %s/second %s/shells
      cat %s/shells/*]]):gsub("%%s/", folder .. "/"):format(support.root, ports.take(2), support.program, examples, folder))
    local text = support.run("bash " .. path)
    os.execute(("rm -r %s/shells"):format(folder))
    learns(2, text, (support.run(("cd %s && ls | tr '\\n' ' '"):format(folder))))
    assert.truthy(text:find("all 2 workers are there: they go on from the newest state", 1, true), text)
  end)
end)

describe("roles.lua", function()
  local function learns(text, files)
    check(1, text, "chief: accuracy (%S+) after 564 updates", function(accuracy) return accuracy > 0.93 end)
    check(1, text, "evaluator: (%d+) checkpoints were evaluated", function(count) return count == 12 end)
    assert.equal("checkpoints digits.keras logs ", files)
  end
  it("learns alone", function() learns(alone("roles.lua")) end)
  it("learns with a chief, workers, servers and an evaluator", function()
    learns(run("launch --chief --workers 2 --parameter-servers 2 --evaluator", "roles.lua"))
  end)
end)

describe("asynchronous.lua", function()
  local function learns(count, text)
    check(count, text, "worker %d of " .. count .. ": 188 updates, accuracy (%S+)", function(accuracy) return accuracy > 0.9 end)
  end
  it("learns alone", function() learns(1, alone("asynchronous.lua")) end)
  it("learns synchronously", function() learns(2, run("launch --workers 2", "asynchronous.lua")) end)
  it("learns asynchronously", function()
    learns(2, run("launch --workers 2 --parameter-servers 1", "asynchronous.lua", "--mode async"))
  end)
end)

describe("shard_by_file.lua", function()
  local function learns(count, text, examples_each)
    check(count, text, "worker %d of " .. count .. ": (%d+) of 1500 examples are mine, test accuracy (%S+)", function(mine, accuracy)
      return mine == examples_each and accuracy > 0.8
    end)
  end
  it("reads all files alone", function() learns(1, alone("shard_by_file.lua"), 1500) end)
  it("reads half of the files on each of two workers", function() learns(2, run("launch --workers 2", "shard_by_file.lua"), 750) end)
  it("has other policies where there are fewer files than workers, which FILE refuses by name", function()
    learns(3, run("launch --workers 3", "shard_by_file.lua", "--files 2 --policy DATA"), 500)
    local text = support.run(("%s launch --workers 3 '%sshard_by_file.lua' -- --job-dir %s --files 2"):format(BEGIN, examples,
      support.folder()))
    assert.truthy(text:find("has 2 files, not enough for 3 workers", 1, true), text)
  end)
end)

describe("managed_job.lua", function()
  local yaml = require "flow.jobs.yaml"
  local function learns(count, text, files)
    check(count, text, "%a+ %d of " .. count .. ": test accuracy (%S+)", function(accuracy) return accuracy > 0.8 end)
    assert.equal("digits.keras logs ", files)
  end
  it("learns alone", function() learns(1, alone("managed_job.lua")) end)

  it("learns as the cluster of its configuration, submitted here", function()
    if not yaml.available() then return pending("libyaml is not installed") end
    local folder = support.folder()
    local text, code = support.run(("cd '%s' && export XDG_STATE_HOME=%s/state; %s submit digits --config config.yaml --backend local "
      .. "--job-dir %s/run --stream-logs managed_job.lua"):format(examples, folder, BEGIN, folder))
    assert.equal(0, code, text)
    learns(2, text, (support.run(("cd %s/run && ls | tr '\\n' ' '"):format(folder))))
  end)

  for _, arguments in ipairs { "--config config.yaml", "--config worker_pools.yaml --region us-central1",
                               "--config config.yaml --backend kubernetes", "--config worker_pools.yaml --backend slurm" } do
    it("is a job that passes its checks: " .. arguments, function()
      if not yaml.available() then return pending("libyaml is not installed") end
      local text, code = support.run(("cd '%s' && %s submit digits %s --dry-run managed_job.lua"):format(examples, BEGIN, arguments))
      assert.equal(0, code, text)
      assert.truthy(text:find("managed_job.lua", 1, true), text)
    end)
  end
end)
