import { Injectable } from '@nestjs/common'
import { Cron } from '@nestjs/schedule'
import { report } from './report.js'

/** A job of five seconds, to see what a SIGTERM does to it. */
@Injectable()
export class SlowTasksService {
  @Cron('* * * * * *')
  async rebuildIndex() {
    await report('rebuildIndex', { begun: true })
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    await report('rebuildIndex', { ended: true })
  }
}
