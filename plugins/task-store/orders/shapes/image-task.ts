/** The image task: `{code: 200, data: {…}}`, from submitted to completed or failed. Pure. */
import type { Shape, Task } from '../../contract.ts';
import { imageAnswer } from './image-answer.ts';
import { readImageRequest } from './image-request.ts';
import { reasonOf, type StateNames, secondsOf } from './states.ts';

const stateNames: StateNames = {
  queued: 'submitted',
  running: 'processing',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
};

/** The envelope's code, whatever the task's state. */
const success = 200;

export const imageTask: Shape = {
  read: readImageRequest,

  submitted: ({ id }) => ({ code: success, data: { id, status: stateNames.queued } }),

  waited: imageAnswer.render,

  deleted: ({ id }) => ({ code: success, data: { id, deleted: true } }),

  render: (task) => ({
    code: success,
    data: {
      id: task.id,
      status: stateNames[task.state],
      progress: task.state === 'succeeded' ? 100 : 0,
      created: secondsOf(task.createdAtMs),
      completed: task.completedAtMs === undefined ? 0 : secondsOf(task.completedAtMs),
      ...endOf(task),
    },
  }),
};

function endOf(task: Task): object {
  const error = reasonOf(task);
  if (error !== undefined) return { error };
  return task.state === 'succeeded' ? { result: { images: task.results.map(({ url }) => ({ url: [url] })) } } : {};
}
