/** Says on descriptor 3 which test has failed and how long each file took, as soon as it is known. */
import { writeSync } from 'node:fs';
import type { TestEvent } from 'node:test/reporters';

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:complete') continue;
    const { name, nesting, details, todo, file } = data;
    const cause = (details.error as { failureType?: string } | undefined)?.failureType;
    // Its tests have failed, and were said.
    const isOuter = cause === 'subtestsFailed';
    if (!details.passed && !isOuter && (todo === undefined || todo === false)) say({ fails: name, file });
    if (nesting === 0) say({ ends: name, ms: Math.round(details.duration_ms), passed: details.passed });
  }
  yield '';
}

function say(message: object): void {
  writeSync(3, `${JSON.stringify(message)}\n`);
}
