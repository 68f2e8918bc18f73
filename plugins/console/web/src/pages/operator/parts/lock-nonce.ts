/**
 * Dialogs lock the page behind them by a style element of react-remove-scroll, which takes its nonce from this global:
 * https://github.com/theKashey/get-nonce#readme
 */
import { nonce } from '../../../nonce.ts';

Object.assign(globalThis, { __webpack_nonce__: nonce });
