/** Chinese texts of the operator's alerts. */
import type { Part } from '../en.ts';

const texts: Part<'operator'>['alerts'] = {
  title: '告警',
  intro: '哪里出了问题、从何时开始、谁已查看。规则与通知渠道在网关文件的 alerts 部分设置。',
  empty: '没有告警',
  emptyHint: '这段时间内没有规则被触发。',
  running_one: '{{count}} 条告警进行中',
  running_other: '{{count}} 条告警进行中',
  subject: '对象',
  what: '内容',
  value: '数值',
  threshold: '阈值：{{value}}',
  began: '开始',
  ended: '结束',
  acknowledged: '确认人',
  acknowledge: '确认',
  acknowledgeTitle: '确认 {{subject}} 的告警',
  acknowledgeHint: '确认后不再显示在横幅中，结束之前也不再重复发送。',
  done: '已确认。',
  state: { running: '进行中', ended: '已结束' },
  sinks: '发送到',
  noSinks: '尚未设置：请在 alerts.sinks 下添加邮箱、Webhook 或群聊机器人。',
  fault: '上一条消息未送达',
  waiting_one: '{{count}} 条消息等待重发',
  waiting_other: '{{count}} 条消息等待重发',
  times: '平时的 {{value}} 倍',
  kinds: {
    model_success: '模型请求成功率',
    provider_success: '上游请求成功率',
    model_first_byte: '模型首字节时间 p95',
    provider_first_byte: '上游首字节时间 p95',
    circuit_open: '熔断已打开',
    key_resting: '上游密钥冷却中',
    negative_margin: '调用成本高于收费',
    spend_spike: '账户消费远高于平时',
    ledger_mismatch: '账目不平',
    usage_implausible: '供应商报告了不可能的用量',
    unpriced_model: '请求了未定价的模型',
  },
};

export default texts;
