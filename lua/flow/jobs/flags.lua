-- flags.lua: the command line of flowlua submit: flags with gcloud's names put values into the document, whatever its form, in the place
-- of what a file says; the others are about this submission.

local errors = require "flow.errors"
local document = require "flow.jobs.document"
local fields = require "flow.jobs.fields"
local machines = require "flow.jobs.machine_types"
local worker_pools = require "flow.jobs.worker_pools"

local raise = errors.raise
local flags = {}

-- What a submission is told besides the job: names with defaults; a list is a flag that may come several times.
flags.OPTIONS = {
  config = "", backend = "", dry_run = false, submit = true, output_dir = "", engine = "ring", image = "", env = {}, mount = {},
  credentials = "", git_url = "", git_branch = "", git_commit = "", git_path = "", restart_policy = "", max_restarts = "",
  namespace = "", shm_size = "", port = "", cpus = "", memory = "", partition = "", package_path = "", staging_bucket = "",
  write_dockerfile = false, base_image = "", stream_logs = false, async = true, project = "",
  workspace_id = "", resource_id = "", ecs_spec = "", code_source_id = "", kubeflow_kind = "",
  threads = "", force = false, help = false,
}

-- Where a flag's value goes in each form: a path of keys, numbers counting a list's entries from 0. kind: how it is written.
local places = {}
local function place(flag, kind, training, vertex) places[flag] = { kind = kind, training = training, vertex = vertex } end

for position, role in ipairs { { "master", "master" }, { "worker", "worker" }, { "parameter-server", "parameterServer" },
                               { "evaluator", "evaluator" } } do
  local flag, name = role[1], role[2]
  local pool = { "workerPoolSpecs", position - 1 }
  local function of_pool(...) return { pool[1], pool[2], ... } end
  place(flag .. "-machine-type", "text", { name .. "Type" }, of_pool("machineSpec", "machineType"))
  place(flag .. "-image-uri", "text", { name .. "Config", "imageUri" }, of_pool("containerSpec", "imageUri"))
  place(flag .. "-accelerator", "accelerator", { name .. "Config", "acceleratorConfig" }, of_pool("machineSpec"))
  if position > 1 then place(flag .. "-count", "text", { name .. "Count" }, of_pool("replicaCount")) end
end
place("scale-tier", "tier", { "scaleTier" })
place("region", "text", { "region" }, {})
place("job-dir", "text", { "jobDir" }, {})
place("module-name", "text", { "pythonModule" }, {})
place("packages", "list", { "packageUris" })
place("python-version", "text", { "pythonVersion" })
place("runtime-version", "text", { "runtimeVersion" })
place("service-account", "text", { "serviceAccount" }, { "serviceAccount" })
place("network", "text", { "network" }, { "network" })
place("enable-web-access", "flag", { "enableWebAccess" }, { "enableWebAccess" })
place("use-chief-in-tf-config", "flag", { "useChiefInTfConfig" })
place("tpu-tf-version", "text", { "masterConfig", "tpuTfVersion" })
place("kms-key", "text", { "encryptionConfig", "kmsKeyName" }, { "encryptionSpec", "kmsKeyName" })
place("max-running-time", "duration", { "scheduling", "maxRunningTime" }, { "scheduling", "timeout" })
place("max-wait-time", "duration", { "scheduling", "maxWaitTime" }, { "scheduling", "maxWaitDuration" })
place("priority", "text", { "scheduling", "priority" })
place("labels", "labels", { "labels" }, { "labels" })

-- Any other field of trainingInput that holds one value, under its own name: --workerCount, --worker_count.
local function field_place(flag)
  local name = flag:gsub("[-_](%l)", function(letter) return letter:upper() end)
  local kind = fields.training_input.fields[name]
  if kind == "text" or kind == "count" or kind == "flag" then return { kind = kind == "flag" and "flag" or "text", training = { name } } end
end

-- The names of a flag with _ for -, if there is one like it.
local function known_names()
  local names = {}
  for name in pairs(places) do names[name] = true end
  for name in pairs(flags.OPTIONS) do names[(name:gsub("_", "-"))] = true end
  return names
end

-- The command line as { name =, what = { "train.lua" } or { "-m", "trainer.task" } or {}, theirs = {}, options =, settings = { { flag =,
-- place =, value = }, ... } }. Raises a sentence.
function flags.parse(arguments)
  local parsed = { theirs = {}, settings = {}, options = {}, what = {} }
  for name, default in pairs(flags.OPTIONS) do parsed.options[name] = type(default) == "table" and {} or default end
  local positional, i = {}, 1
  while i <= #arguments do
    local text = arguments[i]
    if text == "--" then
      for k = i + 1, #arguments do parsed.theirs[#parsed.theirs + 1] = arguments[k] end
      break
    end
    local name, value = text:match "^%-%-([^=]+)=(.*)$"
    name = name or text:match "^%-%-(.+)$"
    local function take(boolean)
      if value then return value end
      if boolean then return "true" end
      i = i + 1
      value = arguments[i]
      if value == nil or value == "--" then raise("--%s needs a value", name) end
      return value
    end
    if text == "-m" then
      i = i + 1
      positional[#positional + 1] = text
      positional[#positional + 1] = arguments[i] or raise("-m needs the name of a module")
    elseif not name then
      positional[#positional + 1] = text
    else
      local dashed = name:gsub("_", "-")
      local negated = dashed:match "^no%-(.+)$"
      local option = dashed:gsub("%-", "_")
      local target = places[dashed] or field_place(name)
      local default = flags.OPTIONS[option]
      if negated and type(flags.OPTIONS[(negated:gsub("%-", "_"))]) == "boolean" then
        parsed.options[(negated:gsub("%-", "_"))] = false
      elseif negated and places[negated] and places[negated].kind == "flag" then
        parsed.settings[#parsed.settings + 1] = { flag = "--" .. name, place = places[negated], value = "false" }
      elseif default ~= nil then
        local given = take(type(default) == "boolean")
        if type(default) == "table" then table.insert(parsed.options[option], given)
        elseif type(default) == "boolean" then parsed.options[option] = given ~= "false"
        else parsed.options[option] = given end
      elseif target then
        parsed.settings[#parsed.settings + 1] = { flag = "--" .. name, place = target, value = take(target.kind == "flag") }
      else
        raise("unknown option --%s%s (arguments of the script come after --)", name, errors.suggestion(dashed, known_names()))
      end
    end
    i = i + 1
  end
  parsed.name = table.remove(positional, 1)
  parsed.what = positional
  return parsed
end

-- "count=4,type=nvidia-tesla-t4" as { count = "4", type = "..." }.
local function pairs_of(setting, known)
  local found = {}
  for part in setting.value:gmatch "[^,]+" do
    local name, value = part:match "^%s*([%w_.-]+)=(.*)$"
    if not name or known and not known[name] then
      raise("%s is written %s, got %q", setting.flag, known and "count=4,type=nvidia-tesla-t4" or "name=value,name=value", setting.value)
    end
    found[name] = value
  end
  return found
end

-- The entry of a key, in whichever spelling the map has it, if it is of the kind that make() makes; else a new one in its place.
local function child(map, key, make, place_text)
  local found, existing = worker_pools.entry_of(map, key)
  if found and found.kind == make(place_text).kind then return found end
  found = make(place_text)
  document.set(map, existing or key, found)
  return found
end

-- The map that the last key of a path is in.
local function walk(tree, path, place_text)
  local node = tree
  for i = 1, #path - 1 do
    local key, after = path[i], path[i + 1]
    if type(key) == "number" then
      for k = #node.items + 1, key + 1 do node.items[k] = document.map(place_text) end
      node = node.items[key + 1]
    else
      node = child(node, key, type(after) == "number" and document.list or document.map, place_text)
    end
  end
  return node
end

-- Sets what a path leads to; maps and lists on the way are made. path: keys and positions from 0. value: a text, a node, or nil for a map
-- that is there afterwards. place_text: the flag, which findings name then as the place. plain: the text may mean a number or true.
local function put(tree, path, value, place_text, plain)
  local map = walk(tree, path, place_text)
  local key = path[#path]
  if type(key) == "number" then
    for k = #map.items + 1, key + 1 do map.items[k] = document.map(place_text) end
    return map.items[key + 1]
  end
  if value == nil then return child(map, key, document.map, place_text) end
  local _, existing = worker_pools.entry_of(map, key)
  document.set(map, existing or key, type(value) == "table" and value or document.scalar(place_text, value, plain))
end

local UNITS = { s = 1, m = 60, h = 3600, d = 86400 }

-- "7200s", "120m", "2h", "1d" or seconds, as "7200s".
function flags.seconds(flag, text)
  local number, unit = text:match "^(%d+%.?%d*)(%a?)$"
  if not number or unit ~= "" and not UNITS[unit] then raise("%s is a time such as 7200s, 120m or 2h, got %q", flag, text) end
  return ("%.14gs"):format(tonumber(number) * UNITS[unit ~= "" and unit or "s"])
end

-- Puts the settings of a command line into a document: "training": { trainingInput }, "vertex": { jobSpec }. Returns { region =, jobDir =,
-- pythonModule = } of those that have no place in a Vertex job itself. Raises for one that the form does not know.
function flags.apply(parsed, tree, form)
  local beside = {}
  for _, setting in ipairs(parsed.settings) do
    local path, kind, flag, value = setting.place[form], setting.place.kind, setting.flag, setting.value
    if not path then raise("%s has no place in a job of Vertex AI, which is made of worker pools", flag) end
    local outer = path[1] == "labels" or form == "vertex" and path[1] == "encryptionSpec"
    if #path > 0 and not outer then path = { form == "training" and "trainingInput" or "jobSpec", unpack(path) } end
    if #path == 0 then
      beside[setting.place.training[1]] = value
    elseif kind == "accelerator" then
      local given, map = pairs_of(setting, { count = true, type = true }), put(tree, path, nil, flag)
      put(map, { form == "vertex" and "acceleratorCount" or "count" }, given.count or "1", flag, true)
      if given.type then put(map, { form == "vertex" and "acceleratorType" or "type" }, machines.gpu_of_flag(given.type), flag) end
    elseif kind == "labels" then
      local map = put(tree, path, nil, flag)
      for name, text in pairs(pairs_of(setting)) do put(map, { name }, text, flag) end
    elseif kind == "list" then
      local list = document.list(flag)
      for part in value:gmatch "[^,]+" do list.items[#list.items + 1] = document.scalar(flag, part) end
      put(tree, path, list, flag)
    else
      if kind == "tier" then value = value:upper():gsub("%-", "_") end
      if kind == "duration" then value = flags.seconds(flag, value) end
      put(tree, path, value, flag, true)
    end
  end
  return beside
end

return flags
