-- dockerfile.lua: flowlua submit --write-dockerfile: the image of a trainer: the run-time image with the trainer's files and what it runs.

local errors = require "flow.errors"
local files = require "flow.io"
local json = require "flow.json"
local package_of = require "flow.jobs.package"
local shell = require "flow.shell"

local dockerfile = {}

local NAME, BASE = "Dockerfile", "flowlua"

-- A list of texts as COPY and ENTRYPOINT have it.
local function list(texts)
  local parts = {}
  for i, text in ipairs(texts) do parts[i] = json.encode({ text }):sub(2, -2) end
  return "[" .. table.concat(parts, ", ") .. "]"
end

-- The folders and files at the top of the root that hold what is copied.
local function entries(collected)
  local found, seen = {}, {}
  for _, name in ipairs(collected.files) do
    local top = name:match "^([^/]+)/" or name
    if not seen[top] then
      seen[top] = true
      found[#found + 1] = { top, folder = name:find "/" ~= nil }
    end
  end
  return found
end

-- The text for a job's program; folder: where its files are.
function dockerfile.text(job, folder, base)
  local collected = package_of.collect(folder, job.what)
  local lines = { "FROM " .. (base ~= "" and base or BASE), "WORKDIR /root" }
  for _, entry in ipairs(entries(collected)) do
    lines[#lines + 1] = ("COPY %s"):format(list { entry[1], entry.folder and ("/root/%s/"):format(entry[1]) or "/root/" })
  end
  lines[#lines + 1] = "ENTRYPOINT " .. list { "flowlua", unpack(collected.what) }
  return table.concat(lines, "\n") .. "\n", collected.root
end

-- Writes it beside the files and returns what builds and pushes the image, a line each.
function dockerfile.write(job)
  local options = job.options
  if not job.what[1] then
    errors.raise("--write-dockerfile: which program? flowlua submit %s --write-dockerfile -m trainer.task", job.name)
  end
  local text, root = dockerfile.text(job, options.package_path ~= "" and options.package_path or ".", options.base_image)
  local path = root .. "/" .. NAME
  if files.exists(path) and not options.force then errors.raise("%s is already there: --force replaces it", path) end
  files.write(path, text)
  local image = job.roles[1] and job.roles[1].image or job.name:lower()
  return { "wrote " .. path, ("docker build --tag %s %s"):format(shell.quote(image), shell.quote(root)),
           "docker push " .. shell.quote(image) }
end

return dockerfile
