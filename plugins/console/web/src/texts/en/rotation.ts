/** English texts of keys that get another secret. */
export default {
  rotation: {
    rotate: 'Rotate',
    title: 'Rotate {{name}}?',
    words: 'The key gets another secret, which is shown once. Its limits, cap and project stay.',
    overlap: 'The earlier secret works',
    hint: 'Change your programs in this time.',
    by: {
      none: 'no more',
      hour: 'one more hour',
      day: 'one more day',
      week: 'one more week',
      month: '30 more days',
    },
    made: 'The new secret of your key',
    madeOf: 'The new secret of {{name}}',
    until: 'Earlier secret {{prefix}}… works until {{date}}',
  },
};
