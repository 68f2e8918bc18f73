/** Chinese texts of signing in and up. */
import type { Part } from '../en.ts';

const texts: Part<'entry'> = {
  signIn: { title: '登录' },
};
export default texts;
