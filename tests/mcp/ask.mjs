/** The program that the suite starts as a client: has the gateway play the scenario, and ends with how that went. */
const [, , control, url] = process.argv;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const answer = await fetch(control, { method: 'POST', body: JSON.stringify({ url, scenario, context }) });
if (!answer.ok) {
  console.error(await answer.text());
  process.exitCode = 1;
}
