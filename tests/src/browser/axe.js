// In a page with axe-core: calls back with one sentence for each element that breaks a rule.
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then(
  (results) => done(results.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary.replace(/\s+/g, " ")}`))),
  (error) => done([`axe failed: ${error}`]),
);
