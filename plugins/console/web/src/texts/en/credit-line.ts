/** English texts of credit lines. */
export default {
  creditLine: {
    title: 'Credit line',
    hint: 'Money that can be used each month before it is paid. It is used last, and the used part is paid behind the end of the month: a top-up does that.',
    none: 'This account pays before it calls.',
    set: 'Set the credit line',
    setTitle: 'Credit line of {{name}}',
    setText: 'More counts at once. Less, or 0, ends what is open within about a quarter of an hour.',
    wasSet: 'The credit line is {{amount}} a month now.',
    amount: 'Each month',
    left: 'Left this month',
    stopped: 'Stopped until it is paid',
    stopsAt: 'Stops, unless it is paid,',
    month: 'Month',
    used: 'Used',
    paid: 'Paid',
    due: 'To be paid',
    dueAt: 'By',
    states: { running: 'running', due: 'due', overdue: 'overdue', paid: 'paid' },
  },
};
