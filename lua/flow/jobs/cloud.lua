-- cloud.lua: what AI Platform and Vertex AI have in common: requests for gcloud, made of a configuration in their own form or of a job in
-- the other one.

local job_of = require "flow.jobs.job"

local cloud = {}

-- Reports what none of the services does for a job.
function cloud.check(job, report, service)
  if not job.module then job_of.check_images(job, report) end
  if job.options.engine == "mpi" then report:error("--engine", "%s starts no mpirun: --engine ring", service) end
  if job.git then report:error("--git-url", "%s clones no repository: put the code into the image (--write-dockerfile)", service) end
  if job.credentials then
    report:error("--credentials", "a key would stand in the request: %s gives its machines those of --service-account", service)
  end
  for _, name in ipairs { "restart_policy", "cpus", "memory", "shm_size" } do
    if job.options[name] ~= "" then
      report:error("--" .. name:gsub("_", "-"), "%s has no place for it: machines have it by their type", service)
    end
  end
  for _, mount in ipairs(job.mounts) do
    local there = mount.kind == "bucket" and mount.scheme == "gs" and mount.path == "/gcs/" .. mount.bucket and mount.folder == ""
    if not there and not (service == "Vertex AI" and mount.kind == "nfs") then
      report:error("--mount", "%s: %s has buckets at /gcs/BUCKET%s", mount.path, service,
        service == "Vertex AI" and " and mounts NFS" or "")
    end
  end
end

-- gcloud with the project, if one is said.
function cloud.gcloud(job, ...)
  local command = { "gcloud", ... }
  if job.options.project ~= "" then command[#command + 1] = "--project=" .. job.options.project end
  return command
end

-- What the tasks of a job have printed; field: where the service puts the text.
function cloud.logs(job, id, field)
  return cloud.gcloud(job, "logging", "read", "resource.type=ml_job AND resource.labels.job_id=" .. id, "--order=asc",
    ("--format=value(%s)"):format(field))
end

function cloud.seconds(number) return ("%.14gs"):format(number) end

return cloud
