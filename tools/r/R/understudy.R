understudy_release <- function(data, schema, epsilon, out, ...) {
  if (is.data.frame(data)) {
    # The private rows lie in a file for as long as this takes; R's folder for that is the user's alone.
    file <- tempfile(fileext = ".csv")
    on.exit(unlink(file))
    write.csv(data, file, row.names = FALSE, na = "", fileEncoding = "UTF-8")
    data <- file
  }
  choices <- list(schema = path.expand(schema), epsilon = epsilon, out = path.expand(out), ...)
  run(c("release", path.expand(data), options_of(choices)))
  structure(list(path = path.expand(out)), class = "understudy_release")
}

print.understudy_release <- function(x, ...) {
  cat("<understudy release in ", x$path, ">\n", sep = "")
  invisible(x)
}

understudy_sample <- function(release, rows = NULL, where = NULL, match = NULL, key = NULL) {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  choices <- list(rows = rows, where = where, match = match, key = key, out = file)
  run(c("sample", folder_of(release), options_of(choices)))
  drawn <- read.csv(file, na.strings = "", check.names = FALSE, fileEncoding = "UTF-8")
  attr(drawn, "certified") <- FALSE
  drawn
}

understudy_answer <- function(release, predicate) {
  run_json(c("answer", folder_of(release), predicate))
}

understudy_estimate <- function(release, statistic, ...) {
  run_json(c("estimate", folder_of(release), statistic, options_of(list(...))))
}

understudy_verify <- function(release, ...) {
  # A release that fails is an answer, with `passed` FALSE, and not an error of the call.
  run_json(c("verify", folder_of(release), options_of(list(...))), fine = c(0L, 1L))
}

understudy_plan <- function(schema, epsilon = NULL, ...) {
  run_json(c("plan", options_of(list(schema = path.expand(schema), epsilon = epsilon, ...))))
}
