# How the command line is called. Every function of the package is one call of it.

# The program and what comes before its first word, such as c("python3", "-m", "understudy").
command <- function() {
  found <- getOption("understudy.command", Sys.getenv("UNDERSTUDY", "understudy"))
  if (length(found) == 1) strsplit(found, " +")[[1]] else found
}

# list(rows_public = 5, yes = TRUE, match = c("a", "b")) as --rows-public 5 --yes --match a --match b.
options_of <- function(choices) {
  if (length(choices) && (is.null(names(choices)) || any(names(choices) == ""))) {
    stop("further options of understudy need names, such as epsilon = 1", call. = FALSE)
  }
  words <- character()
  for (name in names(choices)) {
    value <- choices[[name]]
    flag <- paste0("--", gsub("_", "-", name, fixed = TRUE))
    if (is.null(value) || identical(value, FALSE)) next
    if (identical(value, TRUE)) {
      words <- c(words, flag)
    } else {
      for (each in value) words <- c(words, flag, as_word(each))
    }
  }
  words
}

as_word <- function(value) {
  if (is.numeric(value)) format(value, digits = 15, scientific = FALSE, trim = TRUE)
  else as.character(value)
}

# Run the command; the lines that it printed. An exit code that is not in `fine` is an error with the
# program's own words.
run <- function(words, fine = 0L) {
  program <- command()
  said <- tempfile()
  on.exit(unlink(said))
  # R's own search path for libraries would give Python those of another Python.
  libraries <- Sys.getenv("LD_LIBRARY_PATH", NA)
  if (!is.na(libraries)) {
    Sys.unsetenv("LD_LIBRARY_PATH")
    on.exit(Sys.setenv(LD_LIBRARY_PATH = libraries), add = TRUE)
  }
  quoted <- shQuote(c(program[-1], words))
  printed <- tryCatch(
    suppressWarnings(system2(program[1], quoted, stdout = TRUE, stderr = said)),
    error = function(e) {
      stop("the program ", sQuote(program[1]), " was not found: install understudy, or say where it ",
           "is with options(understudy.command = ...)", call. = FALSE)
    }
  )
  code <- attr(printed, "status")
  code <- if (is.null(code)) 0L else code
  if (!code %in% fine) {
    told <- if (file.exists(said)) readLines(said, warn = FALSE) else character()
    stop(paste(c(paste0("understudy ", words[1], " ended with exit code ", code), told),
               collapse = "\n"), call. = FALSE)
  }
  Encoding(printed) <- "UTF-8"
  as.character(printed)
}

run_json <- function(words, fine = 0L) {
  fromJSON(paste(run(c(words, "--json"), fine), collapse = "\n"))
}

folder_of <- function(release) {
  if (inherits(release, "understudy_release")) release$path else path.expand(release)
}
