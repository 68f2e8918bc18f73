/** What needs the library of the protocol: loaded by the first request. */
export { answerOwn } from './own/serve.ts';
export { Servers } from './servers.ts';
export { callTool } from './tool-call.ts';
