/** Lines of result files, in the forms of both protocols. Pure. */
import { isObject, objectOf, tryParse } from '../../core/json/json.ts';
import type { BatchDialect, DoneLine } from './batch.ts';

/** Whether a line goes to the file of errors. */
export function isError(dialect: BatchDialect, { result }: DoneLine): boolean {
  return dialect === 'chat' && result !== 'succeeded';
}

export function outputLine(dialect: BatchDialect, batchId: string, line: DoneLine): string {
  if (dialect === 'gemini') return `${googleLine(line)}\n`;
  return `${dialect === 'chat' ? chatLine(batchId, line) : messagesLine(line)}\n`;
}

const words = {
  expired: ['batch_expired', 'This request was not made before the batch expired.'],
  cancelled: ['batch_cancelled', 'This request was not made before the batch was cancelled.'],
} as const;

function chatLine(batchId: string, line: DoneLine): string {
  const { number, customId, result, status = 500, requestId, answer } = line;
  const id = `batch_req_${batchId.slice(-24)}_${number}`;
  const head = `{"id":${JSON.stringify(id)},"custom_id":${JSON.stringify(customId)}`;
  if (result === 'expired' || result === 'cancelled') {
    const [code, message] = words[result];
    return `${head},"response":null,"error":${JSON.stringify({ code, message })}}`;
  }
  const request = JSON.stringify(requestId ?? null);
  return `${head},"response":{"status_code":${status},"request_id":${request},"body":${bodyOf(answer)}},"error":null}`;
}

function messagesLine({ customId, result, answer }: DoneLine): string {
  const head = `{"custom_id":${JSON.stringify(customId)},"result":{"type":`;
  if (result === 'succeeded') return `${head}"succeeded","message":${bodyOf(answer)}}}`;
  if (result === 'errored') return `${head}"errored","error":${bodyOf(answer)}}}`;
  return `${head}"${result === 'expired' ? 'expired' : 'canceled'}"}}`;
}

/** The id has the line's number and, as JSON, the key of a line or the metadata of a request. */
function googleLine({ customId, result, answer }: DoneLine): string {
  const space = customId.indexOf(' ');
  const mark = space === -1 ? '' : customId.slice(space + 1);
  const head = mark === '' ? '{' : `{"${mark.startsWith('{') ? 'metadata' : 'key'}":${mark},`;
  if (result === 'succeeded') return `${head}"response":${bodyOf(answer)}}`;
  if (result === 'errored') return `${head}"error":${errorOf(answer)}}`;
  const [, message] = words[result];
  const error = result === 'expired' ? { code: 4, message } : { code: 1, message };
  return `${head}"error":${JSON.stringify(error)}}`;
}

/** The status within the body. */
function errorOf(answer: string | undefined): string {
  const body = answer === undefined ? undefined : tryParse(answer);
  return isObject(body) && objectOf(body['error']) !== undefined ? JSON.stringify(body['error']) : bodyOf(answer);
}

/** The answer's own bytes as JSON on one line: its line breaks are all outside strings. */
function bodyOf(answer: string | undefined): string {
  if (answer === undefined) return 'null';
  return tryParse(answer) === undefined ? JSON.stringify(answer) : answer.replace(/[\r\n]+/g, ' ');
}
