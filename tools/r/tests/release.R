# The whole way with the program itself: plan, release, verify, ask, sample. Takes the schema of a
# table and its rows from the demo of the program, and is left out where there is no program.

library(understudy)

there <- tryCatch(length(understudy:::run("--version")) > 0, error = function(e) FALSE)
if (!there) {
  cat("SKIPPED: no understudy; set UNDERSTUDY to its command\n")
  quit(status = 0)
}
folder <- tempfile()
dir.create(folder)
schema <- file.path(folder, "s.toml")
writeLines(c(
  "[understudy]", "version = 1",
  "[[column]]", 'name = "age"', 'type = "integer"', "lower = 0", "upper = 99", "bins = 10",
  "[[column]]", 'name = "sex"', 'type = "category"', 'values = ["F", "M"]',
  "[[column]]", 'name = "smoker"', 'type = "boolean"', "nullable = true"
), schema)
set.seed(1)
rows <- data.frame(
  age = sample(0:99, 500, TRUE), sex = sample(c("F", "M"), 500, TRUE),
  smoker = sample(c(TRUE, FALSE, NA), 500, TRUE)
)
plan <- understudy_plan(schema, epsilon = 1, rows = 500)
stopifnot(is.list(plan), length(plan) > 0)
made <- understudy_release(rows, schema, epsilon = 1, out = file.path(folder, "a.release"),
                           workload = "marginals:2", rows_public = 500)
print(made)
stopifnot(isTRUE(understudy_verify(made)$passed))
answer <- understudy_answer(made, "age >= 60 and sex = 'F'")
stopifnot(answer$estimate >= 0, answer$estimate <= 1)
mean <- understudy_estimate(made, "mean(age) by sex")
stopifnot(is.list(mean), length(mean) > 0)
drawn <- understudy_sample(made, 50, where = "age >= 65", key = 1)
stopifnot(nrow(drawn) == 50, min(drawn$age) >= 65, identical(attr(drawn, "certified"), FALSE))
stopifnot(identical(drawn, understudy_sample(made$path, 50, where = "age >= 65", key = 1)))
refused <- tryCatch(understudy_answer(made, "agee > 3"), error = conditionMessage)
stopifnot(grepl("agee", refused), grepl("exit code 2", refused))
unlink(folder, recursive = TRUE)
cat("all held\n")
