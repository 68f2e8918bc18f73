/** What needs the library of the protocol: loaded by the first request. */
export { Flow } from './connect/flow.ts';
export { ConnectionStore } from './connect/store.ts';
export { answerOwn } from './own/serve.ts';
export { Servers } from './servers.ts';
export { callTool } from './tool-call.ts';
