/** Ids of a run's steps, made of the run's own: its bill finds them again without a list. Pure. */

/** Calls of tools are counted from here on. */
export const firstCall = 1_024;
const most = 4_096;
const form = /^([0-9a-f]{8}-[0-9a-f]{4}-7)([0-9a-f]{3})(-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** A UUID of version 7 has twelve bits behind its time: the step's number is added there, and the 62 bits that follow are the run's. */
export function stepId(run: string, step: number): string {
  const [, time, own, rest] = form.exec(run) ?? [];
  if (time === undefined || own === undefined || rest === undefined)
    throw new Error('the id of a run is no UUID of version 7');
  const number = (Number.parseInt(own, 16) + step) % most;
  return `${time}${number.toString(16).padStart(3, '0')}${rest}`;
}

export const isRunId = (text: string): boolean => form.test(text);
